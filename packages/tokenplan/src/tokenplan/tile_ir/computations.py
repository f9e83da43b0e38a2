"""Operations on tiles: shapes, and the Tile IR operation of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tokenplan.tile_ir.bytecode import Number, Type, Value
from tokenplan.tile_ir.bytecode.building import BodyBuilder
from tokenplan.tile_ir.bytecode.types import tile
from tokenplan.tile_ir.description import Compute, DescriptionError, Tile

Shape = tuple[int, ...]
_ROUND = {"rounding": "nearest_even"}


@dataclass(frozen=True, slots=True)
class Computation:
    """How the shape and dtype of the result follow, and what it is in Tile IR."""

    result: Callable[[Sequence[Tile], Mapping[str, Any]], tuple[Shape, str]]
    emit: Callable[[BodyBuilder, Compute, list[Value]], Value]


def result_of(
    name: str, inputs: Sequence[Tile], attributes: Mapping[str, Any]
) -> tuple[Shape, str]:
    """Shape and dtype; DescriptionError for unknown operations and tiles that do not match."""
    if name not in COMPUTATIONS:
        raise DescriptionError(f"unknown operation {name}", expected=", ".join(COMPUTATIONS))
    return COMPUTATIONS[name].result(inputs, attributes)


def kind_of(found: Tile) -> Type:
    """The type of a tile in Tile IR."""
    return tile(found.dtype, *found.shape)


# -- results ---------------------------------------------------------------------------------------


def _broadcast(inputs: Sequence[Tile], attributes: Mapping[str, Any]) -> tuple[Shape, str]:
    first = inputs[0]
    for other in inputs[1:]:
        pairs = list(zip(first.shape, other.shape, strict=False))
        if len(first.shape) != len(other.shape) or any(
            a != b and 1 not in (a, b) for a, b in pairs
        ):
            raise DescriptionError(
                f"{first.id} and {other.id} have shapes {first.shape} and {other.shape}",
                expected="equal extents, or 1",
            )
    shape = tuple(max(extents) for extents in zip(*(t.shape for t in inputs), strict=True))
    return shape, first.dtype


def _reduced(inputs: Sequence[Tile], attributes: Mapping[str, Any]) -> tuple[Shape, str]:
    axis = attributes["axis"]
    shape = inputs[0].shape
    return (*shape[:axis], 1, *shape[axis + 1 :]), inputs[0].dtype


def _product(inputs: Sequence[Tile], attributes: Mapping[str, Any]) -> tuple[Shape, str]:
    a, b, acc = inputs
    if a.shape[1] != b.shape[0] or acc.shape != (a.shape[0], b.shape[1]):
        raise DescriptionError(f"mma of {a.shape} and {b.shape} into {acc.shape}")
    return acc.shape, acc.dtype


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
    combine: str, identity: int
) -> Callable[[BodyBuilder, Compute, list[Value]], Value]:
    def emit(body: BodyBuilder, node: Compute, inputs: list[Value]) -> Value:
        (source,), axis = inputs, node.attributes["axis"]
        element = source.type["element"]
        shape = node.result.shape
        flat = (*shape[:axis], *shape[axis + 1 :])
        scalar = tile(element)
        with body.block((scalar, scalar)) as region:
            attributes = {} if combine == "maxf" else _ROUND
            lhs, rhs = region.arguments
            body.add("yield", (), values=body.one(combine, scalar, attributes, lhs=lhs, rhs=rhs))
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


_NEGATIVE_INFINITY = 0xFF800000
"""As an f32."""
_SAME = {name: (name, attributes) for name, attributes in {
    "addf": _ROUND, "subf": _ROUND, "mulf": _ROUND, "divf": _ROUND, "maxf": {}, "exp2": {},
    "exp": {"rounding": "full"}, "rsqrt": {}, "sqrt": _ROUND, "negf": {}, "absf": {},
}.items()}  # fmt: skip

COMPUTATIONS = {
    name: Computation(_broadcast, _emit_like(op, **attributes))
    for name, (op, attributes) in _SAME.items()
} | {
    "full": Computation(_broadcast, _emit_full),
    "sum": Computation(_reduced, _emit_reduce("addf", 0)),
    "max": Computation(_reduced, _emit_reduce("maxf", _NEGATIVE_INFINITY)),
    "mma": Computation(_product, _emit_mma),
    "transpose": Computation(lambda i, _: (i[0].shape[::-1], i[0].dtype), _emit_transpose),
    "cast": Computation(lambda i, a: (i[0].shape, a["dtype"]), _emit_like("ftof", **_ROUND)),
}
"""By the name in a description."""
