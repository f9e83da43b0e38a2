"""The arrays that a caller passes to a kernel, and the tensors that represent them.

A tensor uses the memory of its array where it can. It is a copy where the array is not
C-contiguous or is kept in another dtype; what the kernel writes there is copied back. An array
that is passed twice has one copy. Different arrays over the same memory of which one is copied are
read-only: one would not see what is written to the other.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.errors import LaunchError
from neuroncore.machine.core import NeuronCore
from neuroncore.memory import View
from neuroncore.spec import as_dtype
from nki_dtypes import bool_, cast


@dataclass(slots=True)
class _Argument:
    """An array that the caller passed, and the tensor that represents it."""

    original: np.ndarray
    memory: np.ndarray
    view: View

    @property
    def is_copied(self) -> bool:
        return not np.may_share_memory(self.memory, self.original)

    def write_back(self) -> None:
        """Bring what the kernel wrote into the caller's array, where the tensor is a copy."""
        if self.is_copied and self.original.flags.writeable and self.view.spec.mutable:
            self.original[...] = to_numpy(self.view).astype(self.original.dtype, copy=False)


def rebuilt(value: Any, elements: Iterable[Any]) -> Any:
    """A tuple, named tuple or list like `value` of other elements."""
    return getattr(type(value), "_make", type(value))(elements)


class Arguments:
    """The arguments of one launch."""

    def __init__(self, core: NeuronCore) -> None:
        self._core = core
        self._taken: list[_Argument] = []
        self._copies: dict[Hashable, np.ndarray] = {}

    def adopt(self, value: Any, mutable: bool, name: str = "") -> Any:
        """`value` with tensors for its arrays, also inside tuples, lists and dicts."""
        if isinstance(value, np.ndarray):
            if _is_masked(value):
                raise _masked(value, name)
            return self._tensor_of(value, mutable and value.flags.writeable, name)
        if isinstance(value, (tuple, list)) and (
            type(value) in (tuple, list) or hasattr(value, "_make")
        ):
            return rebuilt(value, (self.adopt(v, mutable) for v in value))
        if type(value) is dict:
            return {k: self.adopt(v, mutable) for k, v in value.items()}
        return value

    def write_back(self) -> None:
        """Bring what the kernel wrote into the arrays of which it has copies."""
        for argument in self._taken:
            argument.write_back()

    def protect(self) -> dict[int, str]:
        """Make the tensors read-only whose arrays share memory that they do not share.

        Gives their storages (by id), each with words for the two arrays.
        """
        found: dict[int, str] = {}
        if any(argument.is_copied for argument in self._taken):
            for one, other in self._parted():
                for argument in (one, other):
                    argument.view.spec = argument.view.spec.but(mutable=False)
                    found[id(argument.view.storage)] = f"{_words(one)} and {_words(other)}"
        return found

    def _parted(self) -> Iterator[tuple[_Argument, _Argument]]:
        """Pairs of arrays that share memory whose tensors do not, of which one may be written."""
        for one, other in combinations(self._taken, 2):
            is_parted = one.memory is not other.memory and (one.is_copied or other.is_copied)
            is_written = one.view.spec.mutable or other.view.spec.mutable
            if is_parted and is_written and _overlap(one.original, other.original):
                yield one, other

    def _tensor_of(self, array: np.ndarray, mutable: bool, name: str) -> View:
        kind = as_dtype(array.dtype, takes_64_bits=self._core.rules.takes_64_bits)
        wanted = self._core.stored_as(kind)
        shaped = array.reshape(1) if array.ndim == 0 else array
        is_wider = wanted.itemsize != array.dtype.itemsize  # options.precise is off: in float32
        memory = shaped
        if is_wider or not shaped.flags.c_contiguous:
            same = _identity(array)
            if same not in self._copies:
                self._copies[same] = np.array(shaped, wanted if is_wider else None, order="C")
            memory = self._copies[same]
        tensor = self._core.adopt(
            memory, MemorySpace.hbm, mutable, name, kind if is_wider else None
        )
        self._taken.append(_Argument(array, memory, tensor))
        return tensor


def _identity(array: np.ndarray) -> Hashable:
    """Equal for arrays that are the same elements of the same memory."""
    address = array.__array_interface__["data"][0]
    return address, array.dtype, array.shape, array.strides


def _overlap(one: np.ndarray, other: np.ndarray) -> bool:
    try:
        return np.shares_memory(one, other, max_work=_WORK)  # type: ignore[bad-argument-type]
    except np.exceptions.TooHardError:
        return True


_WORK = 1 << 20
"""How long to look for a common element of two arrays before taking it for granted."""


def _words(argument: _Argument) -> str:
    array = argument.original
    return f"an array of shape {array.shape} with strides of {array.strides} bytes"


def _is_masked(array: np.ndarray) -> bool:
    return "numpy.ma" in sys.modules and isinstance(array, np.ma.MaskedArray)


def _masked(array: np.ndarray, name: str) -> LaunchError:
    return LaunchError(
        f"{name or 'an argument'} is a masked array: a tensor has all its elements",
        got=f"shape {array.shape}, {np.ma.count_masked(array)} elements masked",
        hint="pass array.filled(value), and the mask as an array of its own where it is needed",
    )


def to_numpy(view: View) -> np.ndarray:
    """The elements in a dtype of NumPy; no copy where the tensor is dense already."""
    view.initialize()
    array = view.array
    if view.spec.dtype is bool_:
        return array != 0
    if array.dtype != view.spec.dtype.storage:
        return cast(array, view.spec.dtype)
    return np.ascontiguousarray(array)
