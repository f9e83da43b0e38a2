"""Operations on tiles: shapes, and the Tile IR operation of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

from tokenplan.tile_ir.bytecode import Number, Type, Value
from tokenplan.tile_ir.bytecode.building import BITS, BodyBuilder
from tokenplan.tile_ir.bytecode.types import ITEM_BITS, tile
from tokenplan.tile_ir.description import Compute, DescriptionError, Tile, check_extents

Shape = tuple[int, ...]
_ROUND = {"rounding": "nearest_even"}


FLOATS = ("f16", "bf16", "f32", "f64")
PRODUCTS = {"f16": ("f16", "f32"), "bf16": ("f32",), "f32": ("f32",), "f64": ("f64",),
            "tf32": ("f32",), "f8e4m3fn": ("f16", "f32"), "f8e5m2": ("f16", "f32")}  # fmt: skip
"""By the dtype of the factors of a matrix product, the dtypes of its sum."""


@dataclass(frozen=True, slots=True)
class Computation:
    """How the shape and dtype of the result follow, and what it is in Tile IR."""

    result: Callable[[Sequence[Tile], Mapping[str, Any]], tuple[Shape, str]]
    emit: Callable[[BodyBuilder, Compute, list[Value]], Value]
    arity: int = 1
    attributes: tuple[str, ...] = ()


def result_of(
    name: str, inputs: Sequence[Tile], attributes: Mapping[str, Any]
) -> tuple[Shape, str]:
    """Shape and dtype; DescriptionError for unknown operations and tiles that do not match."""
    if name not in COMPUTATIONS:
        raise DescriptionError(f"unknown operation {name}", expected=", ".join(COMPUTATIONS))
    found = COMPUTATIONS[name]
    if len(inputs) != found.arity:
        raise DescriptionError(f"{name} takes {found.arity} tiles", got=str(len(inputs)))
    if {*attributes} != {*found.attributes}:
        raise DescriptionError(
            f"{name} takes {', '.join(found.attributes) or 'tiles'} alone",
            got=", ".join(attributes) or "none",
        )
    return found.result(inputs, attributes)


def kind_of(found: Tile) -> Type:
    """The type of a tile in Tile IR."""
    return tile(found.dtype, *found.shape)


# -- results ---------------------------------------------------------------------------------------


def _float(found: Tile, allowed: Sequence[str] = FLOATS) -> str:
    if found.dtype not in allowed:
        cure = "compute a cast" if found.dtype in FLOATS else _INTEGERS
        raise DescriptionError(
            f"{found.id} contains {found.dtype}", expected=", ".join(allowed), hint=cure
        )
    return found.dtype


_INTEGERS = "descriptions load, store and update integers, and calculate with floats alone"


def _broadcast(inputs: Sequence[Tile], attributes: Mapping[str, Any]) -> tuple[Shape, str]:
    first = inputs[0]
    for other in inputs[1:]:
        _float(other, (_float(first),))
        pairs = list(zip(first.shape, other.shape, strict=False))
        if len(first.shape) != len(other.shape) or any(
            a != b and 1 not in (a, b) for a, b in pairs
        ):
            raise DescriptionError(
                f"{first.id} and {other.id} have shapes {first.shape} and {other.shape}",
                expected="equal extents, or 1",
            )
    shape = tuple(max(extents) for extents in zip(*(t.shape for t in inputs), strict=True))
    return shape, _float(first)


def _reduced(inputs: Sequence[Tile], attributes: Mapping[str, Any]) -> tuple[Shape, str]:
    (source,), axis = inputs, attributes["axis"]
    if axis not in range(len(source.shape)):
        raise DescriptionError(f"{source.id} has no axis {axis}", got=f"shape {source.shape}")
    return (*source.shape[:axis], 1, *source.shape[axis + 1 :]), _float(source)


def _product(inputs: Sequence[Tile], attributes: Mapping[str, Any]) -> tuple[Shape, str]:
    a, b, acc = inputs
    ranks = {len(tile.shape) for tile in inputs}
    if ranks != {2} or a.shape[1] != b.shape[0] or acc.shape != (a.shape[0], b.shape[1]):
        raise DescriptionError(f"mma of {a.shape} and {b.shape} into {acc.shape}")
    _float(b, (_float(a, tuple(PRODUCTS)),))
    return acc.shape, _float(acc, PRODUCTS[a.dtype])


def _transposed(inputs: Sequence[Tile], attributes: Mapping[str, Any]) -> tuple[Shape, str]:
    (source,) = inputs
    if len(source.shape) != 2:
        raise DescriptionError(f"transpose of {source.id}, which has shape {source.shape}",
                               expected="2 dimensions")  # fmt: skip
    return source.shape[::-1], source.dtype


def _filled(inputs: Sequence[Tile], attributes: Mapping[str, Any]) -> tuple[Shape, str]:
    shape, dtype, value = tuple(attributes["shape"]), attributes["dtype"], attributes["value"]
    check_extents("full", shape)
    if dtype not in BITS:
        raise DescriptionError(f"full has the unknown dtype {dtype!r}", expected=", ".join(BITS))
    number = _number(value)
    if dtype[0] == "i":
        half = 1 << (ITEM_BITS[dtype] - 1 if dtype != "i1" else 0)
        is_in = isfinite(number) and value == int(value) and -half <= value < 2 * half
    else:
        is_in = not isfinite(number) or abs(number) < _INFINITE[dtype]
    if not is_in:
        raise DescriptionError(f"full of {value} in {dtype}", expected=f"a number of {dtype}")
    return shape, dtype


_INFINITE = {"f16": 65520.0, "bf16": (2 - 2**-8 - 2**-24) * 2.0**127,
             "f32": (2 - 2**-24) * 2.0**127, "f64": inf}  # fmt: skip
"""By dtype, the least number that is rounded to infinity; to bf16 by f32."""


def _number(value: Any) -> float:
    try:
        if isinstance(value, str | bytes):
            raise TypeError("a text")
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise DescriptionError(f"full of {value!r}", expected="a number") from None


def _cast(inputs: Sequence[Tile], attributes: Mapping[str, Any]) -> tuple[Shape, str]:
    (source,), dtype = inputs, attributes["dtype"]
    if dtype not in FLOATS or dtype == _float(source):
        raise DescriptionError(f"cast of {source.id} from {source.dtype} to {dtype}",
                               expected=f"another one of {', '.join(FLOATS)}")  # fmt: skip
    return source.shape, dtype


# -- emission --------------------------------------------------------------------------------------


def _emit_like(
    name: str, **attributes: Any
) -> Callable[[BodyBuilder, Compute, list[Value]], Value]:
    """One operation of the same shapes, operands broadcast to the result's."""

    def emit(body: BodyBuilder, node: Compute, inputs: list[Value]) -> Value:
        shape = node.result.shape
        wide = [broadcast(body, value, shape) for value in inputs]
        names = ("lhs", "rhs") if len(wide) == 2 else ("source",)
        operands = dict(zip(names, wide, strict=True))
        return body.one(name, kind_of(node.result), attributes, **operands)

    return emit


def broadcast(body: BodyBuilder, value: Value, shape: Shape) -> Value:
    """The value with extents of 1 repeated."""
    kind = tile(value.type["element"], *shape)
    return value if value.type == kind else body.one("broadcast", kind, source=value)


def _emit_full(body: BodyBuilder, node: Compute, inputs: list[Value]) -> Value:
    return body.constant(kind_of(node.result), node.attributes["value"])


def _emit_reduce(
    combine: str, identities: Mapping[str, int] | None = None
) -> Callable[[BodyBuilder, Compute, list[Value]], Value]:
    def emit(body: BodyBuilder, node: Compute, inputs: list[Value]) -> Value:
        (source,), axis = inputs, node.attributes["axis"]
        element = source.type["element"]
        shape = node.result.shape
        flat = (*shape[:axis], *shape[axis + 1 :])
        scalar = tile(element)
        with body.block((scalar, scalar)) as region:
            attributes = {} if identities else _ROUND
            lhs, rhs = region.arguments
            body.add("yield", (), values=body.one(combine, scalar, attributes, lhs=lhs, rhs=rhs))
        identity = identities[element.kind] if identities else 0
        attributes = {"dim": axis, "identities": (Number(element, identity),)}
        assert region.block is not None
        (found,) = body.add(
            "reduce", (tile(element, *flat),), attributes, (region.block,), sources=source
        )
        return body.one("reshape", kind_of(node.result), source=found)

    return emit


def _emit_mma(body: BodyBuilder, node: Compute, inputs: list[Value]) -> Value:
    a, b, acc = inputs
    return body.one("mmaf", kind_of(node.result), lhs=a, rhs=b, acc=acc)


def _emit_transpose(body: BodyBuilder, node: Compute, inputs: list[Value]) -> Value:
    return body.one("permute", kind_of(node.result), {"permutation": (1, 0)}, source=inputs[0])


_NEGATIVE_INFINITY = {"f16": 0xFC00, "bf16": 0xFF80, "f32": 0xFF800000, "f64": 0xFFF << 52}
"""Its bits by dtype."""
_SAME = {name: (name, attributes) for name, attributes in {
    "addf": _ROUND, "subf": _ROUND, "mulf": _ROUND, "divf": _ROUND, "maxf": {}, "exp2": {},
    "exp": {"rounding": "full"}, "rsqrt": {}, "sqrt": _ROUND, "negf": {}, "absf": {},
}.items()}  # fmt: skip

_TWO = ("addf", "subf", "mulf", "divf", "maxf")

COMPUTATIONS = {
    name: Computation(_broadcast, _emit_like(op, **attributes), 2 if name in _TWO else 1)
    for name, (op, attributes) in _SAME.items()
} | {
    "full": Computation(_filled, _emit_full, 0, ("shape", "value", "dtype")),
    "sum": Computation(_reduced, _emit_reduce("addf"), 1, ("axis",)),
    "max": Computation(_reduced, _emit_reduce("maxf", _NEGATIVE_INFINITY), 1, ("axis",)),
    "mma": Computation(_product, _emit_mma, 3),
    "transpose": Computation(_transposed, _emit_transpose),
    "cast": Computation(_cast, _emit_like("ftof", **_ROUND), 1, ("dtype",)),
}
"""By the name in a description."""
