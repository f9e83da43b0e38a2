"""Messages of a worker: plain values, arrays and records of this project, without calls.

A worker runs the code of users, which could send a pickle that calls a function where it is loaded.
"""

from __future__ import annotations

import io
import pickle
from dataclasses import is_dataclass
from enum import Enum
from typing import Any

from neuroncore.source_location import OUR_PACKAGES

_PLAIN = {
    ("builtins", "set"), ("builtins", "frozenset"), ("builtins", "complex"), ("builtins", "range"),
    ("builtins", "slice"), ("fractions", "Fraction"), ("collections", "OrderedDict"),
    ("pathlib", "PosixPath"), ("pathlib._local", "PosixPath"), ("numpy", "dtype"),
    ("numpy", "ndarray"), ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"), ("numpy._core.numeric", "_frombuffer"),
    ("nki_dtypes.formats", "_interned"),
}  # fmt: skip
_NUMERIC = ("ml_dtypes", "neuroncore.activations", "neuroncore.alu")
"""Modules whose functions and types compute numbers."""


class MessageError(Exception):
    """A worker has sent something else than results."""


class _Records(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _PLAIN:
            return super().find_class(module, name)
        root = module.partition(".")[0]
        if "." not in name and (root in ("numpy", "ml_dtypes") or root in OUR_PACKAGES):
            found = super().find_class(module, name)
            if _is_record(found) or _is_numeric(found):
                return found
        raise MessageError(f"it has sent {module}.{name}, which is not a result")


def _is_record(found: Any) -> bool:
    return isinstance(found, type) and (is_dataclass(found) or issubclass(found, Enum | tuple))


def _is_numeric(found: Any) -> bool:
    is_ufunc = type(found).__name__ == "ufunc"  # NumPy is imported once a message names it
    return is_ufunc or (callable(found) and getattr(found, "__module__", "") in _NUMERIC)


def read_message(sent: bytes) -> Any:
    """The message. Raises MessageError."""
    try:
        return _Records(io.BytesIO(sent)).load()
    except MessageError:
        raise
    except Exception as wrong:  # a forged pickle raises anything
        raise MessageError(f"it has sent what cannot be read: {type(wrong).__name__}") from None
