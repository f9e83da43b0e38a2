"""Arrays of other libraries, seen as NumPy arrays over the same memory and given back in kind.

No library is imported here: an array of torch or JAX exists only if its caller has imported it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np

from neuroncore.errors import DTypeError, LaunchError, MemorySpaceError

# torch dtypes that NumPy lacks, by name: the torch integer of the same width to look through, and
# what the bits mean. The integer views share memory, so a kernel's writes land in the tensor.
_TORCH_BITS: dict[str, tuple[str, type[np.generic], Any]] = {
    "bfloat16": ("int16", np.int16, ml_dtypes.bfloat16),
    "float8_e4m3fn": ("uint8", np.uint8, ml_dtypes.float8_e4m3fn),
    "float8_e5m2": ("uint8", np.uint8, ml_dtypes.float8_e5m2),
    "float8_e8m0fnu": ("uint8", np.uint8, ml_dtypes.float8_e8m0fnu),
}


@dataclass(frozen=True, slots=True)
class ArrayKind:
    """A library's arrays: how to recognise them, see them as NumPy, and make one from NumPy."""

    library: str
    array_class: Callable[[ModuleType], type]
    to_numpy: Callable[[ModuleType, Any], np.ndarray]
    from_numpy: Callable[[ModuleType, np.ndarray], Any]

    def recognises(self, value: object) -> bool:
        library = sys.modules.get(self.library)
        return library is not None and isinstance(value, self.array_class(library))


def _torch_to_numpy(torch: ModuleType, tensor: Any) -> np.ndarray:
    if tensor.device.type != "cpu":
        raise MemorySpaceError(
            f"a torch tensor on device {tensor.device} can't be read here",
            expected="a tensor in host memory",
            hint="pass tensor.cpu()",
        )
    tensor = tensor.detach()
    bits = _TORCH_BITS.get(str(tensor.dtype).removeprefix("torch."))
    if bits is None:
        return tensor.numpy()
    integer, _, meaning = bits
    return tensor.view(getattr(torch, integer)).numpy().view(meaning)


def _torch_from_numpy(torch: ModuleType, array: np.ndarray) -> Any:
    # Torch has no negative strides and warns about read-only memory.
    array = np.require(array, requirements=["C", "W"])
    for name, (_, integer, meaning) in _TORCH_BITS.items():
        if array.dtype == meaning and hasattr(torch, name):
            return torch.from_numpy(array.view(integer)).view(getattr(torch, name))
    try:
        return torch.from_numpy(array)
    except TypeError:
        raise DTypeError(
            f"torch has no dtype for a result of {array.dtype}",
            hint="pass NumPy arrays to get NumPy arrays back",
        ) from None


def _jax_from_numpy(jax: ModuleType, array: np.ndarray) -> Any:
    return jax.numpy.asarray(array)


def _jax_to_numpy(jax: ModuleType, array: Any) -> np.ndarray:
    # JAX arrays never change, so the view is read-only and a kernel that writes it raises.
    return np.asarray(array)


ARRAY_KINDS = (
    ArrayKind("torch", lambda torch: torch.Tensor, _torch_to_numpy, _torch_from_numpy),
    ArrayKind("jax", lambda jax: jax.Array, _jax_to_numpy, _jax_from_numpy),
)


@dataclass(slots=True)
class Conversion:
    """The arguments of one call on their way to NumPy and the results on their way back."""

    kind: ArrayKind | None = None
    originals: dict[Hashable, Any] = field(default_factory=dict)
    """The caller's array by the memory that it is stored in."""

    def to_numpy(self, value: Any) -> Any:
        """`value` with every array of another library, also inside containers, as NumPy."""
        if isinstance(value, list | tuple) and type(value) in (list, tuple):
            return type(value)(map(self.to_numpy, value))
        if type(value) is dict:
            return {key: self.to_numpy(item) for key, item in value.items()}
        kind = next((kind for kind in ARRAY_KINDS if kind.recognises(value)), None)
        return value if kind is None else self._view(kind, value)

    def from_numpy(self, value: Any) -> Any:
        """Results in the callers' kind; a result that is an argument is the caller's own array."""
        if isinstance(value, list | tuple):
            items = map(self.from_numpy, value)
            # namedtuples take their fields one by one
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        if self.kind is None or not isinstance(value, np.ndarray):
            return value
        if _memory(value) in self.originals:
            return self.originals[_memory(value)]
        return self.kind.from_numpy(sys.modules[self.kind.library], value)

    def _view(self, kind: ArrayKind, value: Any) -> np.ndarray:
        if self.kind is not None and self.kind is not kind:
            raise LaunchError(
                "arrays of two libraries in one call",
                expected="arrays of one library, or NumPy",
                got=f"{self.kind.library} and {kind.library}",
                hint="convert one of them with numpy.asarray",
            )
        self.kind = kind
        view = kind.to_numpy(sys.modules[kind.library], value)
        self.originals[_memory(view)] = value
        return view


def _memory(array: np.ndarray) -> Hashable:
    """Equal for arrays that are the same elements of the same memory."""
    interface = array.__array_interface__
    return interface["data"][0], array.dtype, array.shape, array.strides
