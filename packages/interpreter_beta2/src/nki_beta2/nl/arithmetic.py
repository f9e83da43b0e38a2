"""Instructions with a new tile as destination, of which functions on tiles are made.

Operands are a tile and a number, or two tiles of the same partitions whose free axes are equal or
1: axes of extent 1 are repeated without copying, as in the 0.4 example of nl.abs_max.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from neuroncore.alu import ALU_OPS, AluKind
from neuroncore.enums import MemorySpace
from neuroncore.errors import DTypeError, ShapeError, SignatureError, UnsupportedError
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.isa.functions import make_function
from neuroncore.machine.launch import running
from neuroncore.memory import View
from neuroncore.spec import as_dtype
from neuroncore.surface import VERSIONS, signature
from nki_dtypes import DType, float32, promote

RULE = "NKI: nki.language, tile functions (0.3 and later)"
_CALLED_AS = "0.6"
_KEEPS_DTYPE = (AluKind.compare, AluKind.logical)


@cache
def isa(name: str, op: str = "") -> Callable[..., Any]:
    """An instruction as NKI 0.6 calls it, for an operation `op`.

    nl.mod and nl.fmod work in simulation and fail on hardware [NKI 0.3: known issues].
    """
    found = signature(name, _CALLED_AS)
    assert found is not None
    if op == "mod":
        found = replace(found, version=VERSIONS[0])
    return make_function(INSTRUCTIONS[name], found, returns_handle=False)


def new(shape: tuple[int, ...], dtype: Any, space: MemorySpace = MemorySpace.sbuf) -> View:
    """A new tile."""
    return running("a function on tiles").core.allocate(shape, dtype, space)


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number, np.bool_))


def unary(name: str, x: View, dtype: Any = None) -> View:
    """An activation function of a tile, in its dtype unless told otherwise."""
    out = new(x.shape, dtype or x.dtype)
    isa("activation")(out, name, x)
    return out


def scalar(x: View, op: str, operand: Any, dtype: Any = None, **more: Any) -> View:
    """tensor_scalar by name: `op1=`, `operand1=`, `reverse0=` as there."""
    out = new(x.shape, dtype or x.dtype)
    isa("tensor_scalar", op)(out, x, op, operand, **more)
    return out


def copy(x: View, dtype: Any = None) -> View:
    """A copy of a tile in SBUF."""
    out = new(x.shape, dtype or x.dtype)
    isa("tensor_copy")(out, x)
    return out


def reduced(op: str, x: View, axis: Any, dtype: Any = None, keepdims: bool = False) -> View:
    """`op` over the trailing free axes that `axis` names; one result is (P, 1)."""
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    gone = {a + x.ndim if a < 0 else a for a in axes if isinstance(a, (int, np.integer))}
    out = new(_reduced_shape(x.shape, gone, keepdims), dtype or x.dtype)
    isa("tensor_reduce")(out, op, x, tuple(sorted(gone)) or axis, keepdims=keepdims)
    return out


def _reduced_shape(shape: tuple[int, ...], axes: set[Any], keepdims: bool) -> tuple[int, ...]:
    if keepdims:
        left = tuple(1 if d in axes else n for d, n in enumerate(shape))
    else:
        left = tuple(n for d, n in enumerate(shape) if d not in axes)
    if 0 in axes or not left:  # the record reports the error
        left = shape
    return left if len(left) > 1 else (*left, 1)


def binary(name: str, x: Any, y: Any, dtype: Any = None) -> View:
    """op(x, y) element by element.

    Raises ShapeError where shapes do not fit, SignatureError where neither is a tile.
    """
    if is_number(x) and is_number(y):
        raise SignatureError(
            "needs at least one tile", expected="a tile and a tile or number", got=f"{x!r}, {y!r}",
            rule=RULE,
        )  # fmt: skip
    if name == "divide":
        return _divide(x, y, dtype)
    kind = as_dtype(dtype) if dtype is not None else _kind(name, x, y)
    if name == "power" and (is_number(x) or is_number(y)):
        raise UnsupportedError(
            "a power with a number", expected="two tiles", got=f"{x!r} and {y!r}"[:80],
            hint="make the number a tile: nl.full(x.shape, number, dtype=x.dtype)",
            rule="NKI 0.3 release notes, known issues: nl.power with a scalar",
        )  # fmt: skip
    if is_number(y):
        return scalar(x, name, y, kind)
    if is_number(x):
        return scalar(y, name, x, kind, reverse0=True)
    shape = common_shape(x, y)
    out = new(shape, kind)
    isa("tensor_tensor", name)(out, repeat(x, shape), repeat(y, shape), name)
    return out


def _divide(x: Any, y: Any, dtype: Any) -> View:
    """x · (1 / y): no engine divides, and the documents name this instead."""
    kind = dtype or kind_of(x, y)
    if is_number(y):
        return scalar(x, "multiply", 1.0 / float(y) if y else np.inf, kind)
    inverse = new(y.shape, float32)
    isa("reciprocal")(inverse, y)
    return binary("multiply", x, inverse, kind)


def _kind(name: str, x: Any, y: Any) -> DType:
    tile = x if isinstance(x, View) else y
    op = ALU_OPS[name]
    number = is_number(x) or is_number(y)
    return tile.dtype if op.kind in _KEEPS_DTYPE or (op.is_bitvec and number) else kind_of(x, y)


def kind_of(x: Any, y: Any) -> DType:
    """The promoted dtype of two operands, Python numbers by their type.

    The 0.3 documents quote 0.1's rule of promotion; later ones state none.
    """
    try:
        return promote(*(v.dtype if isinstance(v, View) else _weak(v) for v in (x, y)))
    except (ValueError, TypeError) as wrong:
        raise DTypeError(str(wrong), rule="NKI 0.3: nki.language, type promotion") from None


def _weak(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def check_shapes(x: Any, y: Any) -> None:
    """Raise ShapeError for tiles of different shapes if Options.tile_broadcast requires it."""
    both = isinstance(x, View) and isinstance(y, View)
    if both and x.shape != y.shape and x.core.options.tile_broadcast == "reject":
        raise ShapeError(
            "the shapes of two tiles differ",
            expected="equal shapes", got=f"{x.shape} and {y.shape}",
            hint="nl.broadcast_to(x, shape), or Options.tile_broadcast='repeat'",
            rule="NKI 0.3 release notes, known issues: nl functions do not broadcast",
        )  # fmt: skip


def common_shape(x: View, y: View) -> tuple[int, ...]:
    """The broadcast shape of two tiles."""
    fits = len(x.shape) == len(y.shape) and x.shape[0] == y.shape[0]
    fits = fits and all(m == n or 1 in (m, n) for m, n in zip(x.shape, y.shape, strict=True))
    if not fits:
        raise ShapeError(
            "the shapes of two tiles do not fit",
            expected="equal shapes; a free axis may be 1", got=f"{x.shape} and {y.shape}",
            hint="nl.broadcast_to(x, shape) repeats partitions", rule=RULE,
        )  # fmt: skip
    return tuple(map(max, x.shape, y.shape))


def repeat(tile: View, shape: tuple[int, ...]) -> View:
    """The tile with free axes of extent 1 repeated, without copying."""
    for axis, count in enumerate(shape):
        if axis and tile.shape[axis] != count:
            tile = View.broadcast(tile, axis, count)
    return tile


def spread(tile: View, partitions: int) -> View:
    """A tile of one partition copied to all: no view does that, a DMA does."""
    if tile.shape[0] == partitions:
        return tile
    source = copy(tile) if tile.spec.space is MemorySpace.psum else tile
    source.initialize()
    shape = (partitions, *source.shape[1:])
    out = new(shape, source.dtype)
    isa("dma_copy")(out, source.derive(np.broadcast_to(source.array, shape), source.spec.start))
    return out
