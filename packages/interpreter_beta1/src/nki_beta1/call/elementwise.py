"""Element-wise operations between tiles and numbers: which instruction, which dtype, broadcasting.

Functions broadcast along partitions too, operators along free axes only [NKI 0.1: broadcasting].
Results have the promoted dtype of the operands; comparisons and logical operations give bool_.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np

from neuroncore.alu import ALU_OPS, AluKind, AluOp
from neuroncore.enums import MemorySpace
from neuroncore.errors import DTypeError, KernelError, ShapeError, SignatureError
from neuroncore.memory import View
from neuroncore.spec import as_dtype
from nki_beta1.access.access import Access
from nki_beta1.access.indirect import Offset
from nki_beta1.call.apply import apply, cut
from nki_beta1.call.call_plans import record_call, replay_call
from nki_beta1.call.iota import compared, index_tile
from nki_beta1.execution.core import core_of
from nki_beta1.execution.emission import run
from nki_beta1.execution.plans import gathered
from nki_beta1.index.expression import Index
from nki_beta1.index.mask import Mask
from nki_beta1.values.special_methods import described
from nki_dtypes import DType, bool_, float32, int8, int16, int32, promote

RULE = "NKI 0.1: broadcasting"
_DIVIDE = ALU_OPS["divide"]
_TRUTH = frozenset({AluKind.compare, AluKind.logical})

# The bits of a bool_ are a truth value.
_ON_TRUTH = {"bitwise_and": "logical_and", "bitwise_or": "logical_or", "bitwise_xor": "logical_xor"}


def is_operand(value: Any) -> bool:
    """Whether a value can be combined with a tile in an expression."""
    return isinstance(value, (View, Access, int, float, np.number, np.bool_))


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number, np.bool_))


def binary(
    name: str, x: Any, y: Any, dtype: Any = None, mask: Any = None, *, spread: bool = True
) -> Any:
    """op(x, y) element by element; `spread` allows broadcasting along partitions.

    Raises ShapeError where shapes do not broadcast, SignatureError where neither is a tile.
    """
    core = core_of(name)
    key, tensor = None, core.view_class
    if x.__class__ is tensor and y.__class__ in (tensor, float):
        core.flush()  # x or y may be pending
        key = (binary, name, x.spec, y.spec if y.__class__ is tensor else float, dtype, spread)
        tile = replay_call(core, key, mask, x, y)
        if tile is not None:
            return tile
    result = _binary(name, x, y, dtype, mask, spread)
    if key is not None:
        record_call(core, key, result, x, y)
    return result


def _binary(name: str, x: Any, y: Any, dtype: Any, mask: Any, spread: bool) -> Any:
    x, y = _as_operand(x, name), _as_operand(y, name)
    _check(name, x, y)
    core_of(name).flush()
    if name in _ON_TRUTH and all(is_number(v) or dtype_of(v) is bool_ for v in (x, y)):
        name = _ON_TRUTH[name]
    op = ALU_OPS[name]
    kind = dtype if dtype is not None else _result_dtype(op, x, y)
    if is_number(y):
        return _with_scalar(op, x, y, False, kind, mask)
    if is_number(x):
        return _with_scalar(op, y, x, True, kind, mask)
    if x.shape == y.shape:
        return _two_tiles(op, x, y, kind, mask)
    return _broadcast_tiles(op, *_spread(name, x, y, spread), kind, mask)


def _spread(name: str, x: Any, y: Any, spread: bool) -> tuple[Any, Any]:
    """Tiles with equal partitions; raises ShapeError if they have others and may not `spread`."""
    shape = common_shape(x, y)
    if spread:
        return spread_partitions(x, shape), spread_partitions(y, shape)
    if x.shape[0] == y.shape[0]:
        return x, y
    raise ShapeError(
        f"operator on tiles of {x.shape[0]} and {y.shape[0]} partitions",
        expected="equal partitions: operators broadcast along free axes only",
        got=f"shapes {x.shape} and {y.shape}",
        hint=f"use nl.{name}(x, y), or .broadcast_to(shape) first",
        rule=RULE,
    )


def _broadcast_tiles(op: AluOp, x: Any, y: Any, kind: Any, mask: Any) -> Any:
    shape = common_shape(x, y)
    if _is_per_partition(y, shape) and x.shape == shape:
        return _with_scalar(op, x, y, False, kind, mask)
    if _is_per_partition(x, shape) and y.shape == shape:
        return _with_scalar(op, y, x, True, kind, mask)
    return _two_tiles(op, repeat(x, shape), repeat(y, shape), kind, mask)


def _as_operand(value: Any, name: str) -> Any:
    if value.__class__ is Offset:
        return binary("add", value.tile, value.index)
    return index_tile(value, name) if value.__class__ is Index else value


def _check(name: str, x: Any, y: Any) -> None:
    for position, (operand, value) in enumerate((("x", x), ("y", y))):
        if not is_operand(value):
            raise SignatureError(
                f"cannot take {described(value)}",
                expected="a tile and a tile or number",
                got=repr(value).partition("\n")[0][:80],
                operand=operand,
                position=position,
                instruction=f"nl.{name}",
            )
    if is_number(x) and is_number(y):
        raise SignatureError(
            "needs at least one tile",
            expected="a tile and a tile or number",
            got=f"{x!r} and {y!r}",
            position=1,
            instruction=f"nl.{name}",
        )


def _result_dtype(op: AluOp, x: Any, y: Any) -> DType:
    if op.kind in _TRUTH:
        return bool_
    if op.is_bitvec and is_number(x) != is_number(y):
        return dtype_of(y if is_number(x) else x)
    kind = promoted(x, y)
    if op is _DIVIDE and not kind.is_float:
        return float32 if core_of("divide").options.integer_quotient == "float" else kind
    return kind


def promoted(x: Any, y: Any) -> DType:
    """The promoted dtype of two operands."""
    return _promoted(_promotion_operand(x), _promotion_operand(y))


def _promotion_operand(value: Any) -> DType | type:
    """An operand in type promotion: its dtype, or the type of a Python number (weak).

    NumPy's 64-bit numbers, which no tile has, count as Python numbers:
    `1 / np.sqrt(64)` equals `1 / math.sqrt(64)`.
    """
    if isinstance(value, (View, Access)):
        return dtype_of(value)
    if isinstance(value, _OF_64_BITS):
        return type(value.item())
    return as_dtype(value.dtype) if isinstance(value, np.generic) else type(value)


_OF_64_BITS = (np.float64, np.int64, np.uint64)


@lru_cache(maxsize=1024)
def _promoted(first: DType | type, second: DType | type) -> DType:
    kinds = [kind() if isinstance(kind, type) else kind for kind in (first, second)]
    try:
        return promote(*kinds)
    except (ValueError, TypeError) as wrong:
        raise DTypeError(str(wrong), rule="NKI 0.1: type promotion") from None


def dtype_of(value: View | Access) -> DType:
    return (value.base if isinstance(value, Access) else value).spec.dtype


def common_shape(x: Any, y: Any) -> tuple[int, ...]:
    """The broadcast shape of two tiles of one rank; axis 0 is partitions."""
    with suppress(ValueError):  # extents that differ: the error below
        if len(x.shape) == len(y.shape):
            return np.broadcast_shapes(x.shape, y.shape)
    raise ShapeError(
        "shapes do not broadcast",
        expected="equal ranks, and on every axis equal extents or 1",
        got=f"{x.shape} and {y.shape}",
        hint="cut both to equal extents, such as t[:, 0:n]"
        if len(x.shape) == len(y.shape)
        else "give both the same rank: t.reshape(shape), or t.expand_dims(axis)",
        rule=RULE,
    )


def _is_per_partition(tile: Any, shape: tuple[int, ...]) -> bool:
    """A (P, 1) float32 operand, which tensor_scalar takes as it is."""
    one = all(n == 1 for n in tile.shape[1:]) and tile.shape[0] == shape[0]
    return one and dtype_of(tile) is float32


def repeat(tile: Any, shape: tuple[int, ...]) -> Any:
    """The tile with free axes of extent 1 repeated, without copying."""
    if tile.shape == shape:
        return tile
    view = cut(tile, None)
    view.initialize()
    return view.derive(np.broadcast_to(view.array, shape), view.spec.start)


def spread_partitions(tile: Any, shape: tuple[int, ...]) -> Any:
    """A tile of one partition copied to all: no view does that, a DMA does."""
    if tile.shape[0] == shape[0]:
        return tile
    source = to_sbuf(cut(tile, None))
    source.initialize()
    wide = (shape[0], *source.shape[1:])
    out = source.core.allocate(wide, source.spec.dtype, MemorySpace.sbuf)
    repeated = source.derive(np.broadcast_to(source.array, wide), source.spec.start)
    run("dma_copy", {"dst": out, "src": repeated}, {})
    return out


def _with_scalar(op: AluOp, data: Any, number: Any, reverse: bool, dtype: Any, mask: Any) -> Any:
    if isinstance(number, (np.bool_, bool)):
        number = int(number)
    if op.name == "power":  # GpSimdE, which does not reach PSUM
        data, number = to_sbuf(data), number if is_number(number) else to_sbuf(number)
    operand = cut(number, None) if isinstance(number, Access) else number
    return apply(
        "tensor_scalar",
        {"data": data, "operand0": operand},
        {"op0": op, "reverse0": reverse},
        over="data",
        dtype=dtype,
        mask=mask,
    )


def _two_tiles(op: AluOp, x: Any, y: Any, dtype: Any, mask: Any) -> Any:
    if op.name == "power":
        x, y = to_sbuf(x), to_sbuf(y)
    elif _in_psum(x) and _in_psum(y):
        y = to_sbuf(y)
    return apply(
        "tensor_tensor", {"data1": x, "data2": y}, {"op": op}, over="data1", dtype=dtype, mask=mask
    )


def _in_psum(tile: Any) -> bool:
    return (tile.base if isinstance(tile, Access) else tile).spec.space is MemorySpace.psum


def to_sbuf(tile: Any) -> Any:
    """The tile, copied where it is in PSUM."""
    return copy(tile) if _in_psum(tile) else tile


# -- one operand ----------------------------------------------------------------------------------


def unary(name: str, x: Any, dtype: Any = None, mask: Any = None) -> Any:
    """An activation function of a tile, in its dtype unless told otherwise."""
    return unary_call(_activation, name, x, dtype, mask)


def copy(x: Any, dtype: Any = None, mask: Any = None) -> Any:
    """A copy of a tile in SBUF."""
    return unary_call(_copy, "copy", x, dtype, mask)


def _activation(name: str, x: Any, dtype: Any, mask: Any) -> Any:
    return apply(
        "activation", {"data": x, "bias": None, "scale": 1.0, "reduce_res": None}, {"op": name},
        over="data", dtype=dtype, mask=mask,
    )  # fmt: skip


def _copy(_: str, x: Any, dtype: Any, mask: Any) -> Any:
    return apply("tensor_copy", {"src": x}, {}, over="src", dtype=dtype, mask=mask)


def unary_call(function: Callable[..., Any], name: str, x: Any, dtype: Any, mask: Any) -> Any:
    """function(name, x, dtype, mask), which is one instruction, by its plan if there is one."""
    core = core_of(name)
    key = None
    if x.__class__ is core.view_class:
        core.flush()
        key = (function, name, x.spec, dtype)
        tile = replay_call(core, key, mask, x)
        if tile is not None:
            return tile
    result = function(name, x, dtype, mask)
    if key is not None:
        record_call(core, key, result, x)
    return result


def scalar_op(
    x: Any, op: str, operand: Any, dtype: Any = None, mask: Any = None, **more: Any
) -> Any:
    """tensor_scalar by name: `op1=`, `operand1=`, `reverse0=` as there."""
    second = more.pop("operand1", None)
    return apply(
        "tensor_scalar",
        {"data": x, "operand0": operand, "operand1": second},
        {"op0": op, **more},
        over="data",
        dtype=dtype,
        mask=mask,
    )


def negative(x: Any, dtype: Any = None, mask: Any = None) -> Any:
    return scalar_op(x, "multiply", -1, dtype, mask)


def invert(x: Any, dtype: Any = None, mask: Any = None) -> Any:
    core_of("invert").flush()
    if dtype_of(x) is bool_:
        return scalar_op(x, "equal", 0.0, dtype, mask)
    return scalar_op(x, "invert", None, dtype, mask)


def broadcast_to(x: Any, shape: Any) -> Any:
    """The tile with axes of extent 1 repeated, as it is now: a value, like every other result.

    Free axes are repeated without copying while nothing writes to the tile. Of a tensor in HBM it
    is a view.
    """
    wanted = tuple(int(n) for n in shape)
    core_of("broadcast_to").flush()
    x = cut(x, None)
    if isinstance(x, View):
        x.detach()  # type: ignore[attr-defined]
    if wanted != common_shape(x, _Shaped(wanted)):
        raise ShapeError(f"a tile of shape {x.shape} does not broadcast to {wanted}", rule=RULE)
    source = spread_partitions(gathered(x), wanted)
    view: Any = source.derive(np.broadcast_to(source.array, wanted), source.spec.start)
    if view.spec.space.on_chip:
        view.is_value = view.is_shared = True
        view.core.add_dependent(view.storage, view)
    return view


class _Shaped:
    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape


# -- choosing -------------------------------------------------------------------------------------

_BITS = {1: int8, 2: int16, 4: int32}


def where(condition: Any, x: Any, y: Any, dtype: Any = None, mask: Any = None) -> Any:
    """x where condition is not 0, else y: bit for bit, NaN and infinity included.

    The condition may be a comparison of index expressions.
    Works on raw bits: with m all ones where the condition holds, (x & m) | (y & ~m).
    """
    x, y = _as_operand(x, "where"), _as_operand(y, "where")
    kind = as_dtype(dtype) if dtype is not None else _result_dtype(ALU_OPS["add"], x, y)
    bits = _BITS[kind.itemsize]
    condition, holds = (
        compared(condition, "where") if condition.__class__ is Mask else (condition, "not_equal")
    )
    shape = condition.shape
    ones = scalar_op(condition, holds, 0.0, bits, op1="multiply", operand1=-1.0)
    chosen = binary("bitwise_and", _as_bits(x, shape, kind, bits), ones)
    other = binary("bitwise_and", _as_bits(y, shape, kind, bits), invert(ones))
    result = binary("bitwise_or", chosen, other, mask=mask)
    view = result.view(kind)
    view.is_value, view.region = True, result.region
    return view


def _as_bits(value: Any, shape: tuple[int, ...], kind: DType, bits: DType) -> Any:
    if is_number(value):
        tile = core_of("where").allocate(shape, kind, MemorySpace.sbuf)
        run("memset", {"dst": tile, "value": value}, {})
        return tile.view(bits)
    if common_shape(value, _Shaped(shape)) != shape:
        raise KernelError(
            f"where: a value of shape {value.shape} does not fit the condition's {shape}", rule=RULE
        )
    full = repeat(spread_partitions(value, shape), shape)
    return copy(full, dtype=kind).view(bits)
