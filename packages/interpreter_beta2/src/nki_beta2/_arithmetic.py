"""What functions on tiles are made of: instructions with a new tile as destination.

A tile beside a number, or two tiles of the same partitions whose free axes are equal or 1: those of
extent 1 are repeated without copying, as the 0.4 example of nl.abs_max does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from neuroncore.alu import ALU_OPS, AluKind
from neuroncore.calls import make_function
from neuroncore.core import as_dtype
from neuroncore.engines import Space
from neuroncore.errors import DTypeError, ShapeError, SignatureError, UnsupportedError
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.launch import running
from neuroncore.memory import View
from neuroncore.surface import VERSIONS, signature
from nki_dtypes import DType, float32, promote

RULE = "NKI: nki.language, tile functions (0.3 and later)"
_KEEPS_DTYPE = (AluKind.compare, AluKind.logical)


@cache
def isa(name: str) -> Callable[..., Any]:
    """An instruction as the newest version calls it."""
    found = signature(name, VERSIONS[-1])
    assert found is not None
    return make_function(INSTRUCTIONS[name], found, returns_handle=False)


@cache
def _simulated(name: str) -> Callable[..., Any]:
    """An instruction that takes the operations that documents call unsupported on hardware."""
    found = signature(name, VERSIONS[-1])
    assert found is not None
    return make_function(INSTRUCTIONS[name], replace(found, version=VERSIONS[0]), False)


def _with(op: str) -> Callable[[str], Callable[..., Any]]:
    """nl.mod and nl.fmod work in simulation and fail on hardware [NKI 0.3: known issues]."""
    return _simulated if op == "mod" else isa


def new(shape: tuple[int, ...], dtype: Any, space: Space = Space.sbuf) -> View:
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
    _with(op)("tensor_scalar")(out, x, op, operand, **more)
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
    shape = tuple(1 if d in gone else n for d, n in enumerate(x.shape) if keepdims or d not in gone)
    if 0 in gone or not shape:  # the record says what is wrong
        shape = x.shape
    out = new(shape if len(shape) > 1 else (*shape, 1), dtype or x.dtype)
    isa("tensor_reduce")(out, op, x, tuple(sorted(gone)) or axis, keepdims=keepdims)
    return out


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
    _with(name)("tensor_tensor")(out, repeat(x, shape), repeat(y, shape), name)
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
    """The dtype in which two operands meet, numbers by the type that Python gives them.

    The 0.3 documents quote 0.1's rule of promotion; later ones state none.
    """
    try:
        return promote(*(v.dtype if isinstance(v, View) else _weak(v) for v in (x, y)))
    except (ValueError, TypeError) as wrong:
        raise DTypeError(str(wrong), rule="NKI 0.3: nki.language, type promotion") from None


def _weak(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def check_shapes(x: Any, y: Any) -> None:
    """Two tiles that a kernel names have one shape where Options.tile_broadcast asks for that."""
    both = isinstance(x, View) and isinstance(y, View)
    if both and x.shape != y.shape and x.core.options.tile_broadcast == "refuse":
        raise ShapeError(
            "the shapes of two tiles differ",
            expected="equal shapes", got=f"{x.shape} and {y.shape}",
            hint="nl.broadcast_to(x, shape), or Options.tile_broadcast='repeat'",
            rule="NKI 0.3 release notes, known issues: nl functions do not broadcast",
        )  # fmt: skip


def common_shape(x: View, y: View) -> tuple[int, ...]:
    """The shape in which two tiles meet."""
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
    source = copy(tile) if tile.spec.space is Space.psum else tile
    source.settle()
    shape = (partitions, *source.shape[1:])
    out = new(shape, source.dtype)
    isa("dma_copy")(out, source.derive(np.broadcast_to(source.array, shape), source.spec.start))
    return out
