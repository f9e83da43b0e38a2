"""Operands of examples: from what a record writes to tensors on a core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.memory import Core, View
from neuroncore.spec import Spec, parse_spec, row_major
from nki_dtypes import cast, resolve


def make_operand(core: Core, given: Any) -> Any:
    """An operand on `core`, as `example_call` describes; its memory is initialized."""
    if isinstance(given, str):
        return make_view(core, parse_spec(given))
    if isinstance(given, tuple):
        space, _, dtype = given[0].partition(" ")
        return _filled(core, MemorySpace[space], given[1], dtype or "float32")
    if isinstance(given, np.ndarray):
        return _filled(core, MemorySpace.sbuf, given)
    return given(core) if callable(given) else given


def gathering(source: str, index: str, rows: int) -> Callable[[Any], View]:
    """`rows` rows of `source` (spec text, 2-D), named by an index tile (spec text)."""
    return _rows(source, index, rows, "vector_offset", f", named by {index}")


def moving(source: str, index: str, rows: int) -> Callable[[Any], View]:
    """`rows` rows of `source` (spec text, 2-D) from one that an index tile (spec text) names."""
    return _rows(source, index, rows, "scalar_offset", f" from {index} on")


def _rows(source: str, index: str, rows: int, offset: str, which: str) -> Callable[[Any], View]:
    def make(core: Any) -> View:
        base, at = make_operand(core, source), make_operand(core, index)
        width = base.shape[1]
        return base.ap([[width, rows], [1, width]], **{offset: at})

    make.__doc__ = f"{rows} rows of {source}{which}"
    return make


def make_view(core: Core, spec: Spec) -> View:
    """A new tensor with the layout of `spec`; it may break a limit, so nothing is checked."""
    storage = core.stored_as(spec.dtype)
    dense = spec.strides == row_major(spec.shape)
    row = spec.strides[0] if spec.space.on_chip else 0
    shape = spec.shape if dense else (spec.shape[0], row) if row else (_reach(spec),)
    first = spec.start if spec.space.on_chip else 0
    array = np.zeros((shape[0] + first, *shape[1:]), storage)
    whole = core.adopt(array, spec.space, spec.mutable, dtype=spec.dtype)
    whole.storage.poison(zero=core.options.uninitialized == "zero")
    view = whole.derive(whole.array[first:], spec.start)
    if dense:
        return view
    return view.ap([list(p) for p in zip(spec.strides, spec.shape, strict=True)])


def _reach(spec: Spec) -> int:
    return 1 + sum((n - 1) * s for n, s in zip(spec.shape, spec.strides, strict=True))


def _filled(core: Core, space: MemorySpace, array: np.ndarray, dtype: str = "float32") -> View:
    kind = resolve(dtype)
    exact = array.astype(kind.storage) if kind.is_integer else cast(np.float32(array), kind)
    stored = np.ascontiguousarray(exact, core.stored_as(kind))
    return core.adopt(stored, space, dtype=kind)
