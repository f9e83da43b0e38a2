"""How findings name tensors."""

from __future__ import annotations

from neuroncore.memory import Storage
from neuroncore.program.naming import assigned_name


def label(storage: Storage) -> str:
    """What the kernel calls a tensor: its own name, the variable it was assigned to, or neither."""
    return storage.name or assigned_name(storage.place) or "the tensor"


def described(storage: Storage) -> str:
    """Shape, dtype and memory: (128, 512), float32, SBUF."""
    return f"{storage.shape}, {storage.dtype}, {storage.space.name.upper()}"
