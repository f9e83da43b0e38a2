"""Types of Tile IR values, and how each is stored: one line of a table per kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

DYNAMIC = -(2**63)
"""The extent or stride that is an operand."""

PADDINGS = ("zero", "neg_zero", "nan", "pos_inf", "neg_inf")


@dataclass(frozen=True, slots=True)
class Type:
    """A kind and its fields, in the order of the table.

    >>> str(tile("f32", 64, 128))
    'tile<64x128xf32>'
    """

    kind: str
    fields: tuple[Any, ...] = ()

    def __getitem__(self, name: str) -> Any:
        """The field of this name."""
        return self.fields[FIELD_NAMES[self.kind].index(name)]

    def __str__(self) -> str:
        return _TEXT.get(self.kind, Type._plain)(self)

    def _plain(self) -> str:
        return self.kind


@dataclass(frozen=True, slots=True)
class TypeRecord:
    """How a kind is stored: its tag, the minor version that has it, and its fields.

    `fields` are (name, codec). A codec with "?" is optional: from `mask_since` on a bit mask before
    the fields states which are present; before that, views have a byte in its place, and other
    kinds do not have the field.
    """

    tag: int
    fields: tuple[tuple[str, str], ...] = ()
    since: int = 1
    mask_since: int = 99


def _record(tag: int, text: str, since: int = 1, mask_since: int = 99) -> TypeRecord:
    fields = tuple((name, codec) for name, codec in (f.split(":") for f in text.split()))
    return TypeRecord(tag, fields, since, mask_since)


TYPES = {
    name: TypeRecord(tag)
    for tag, name in enumerate(
        ("i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "tf32", "f64", "f8e4m3fn", "f8e5m2")
    )
} | {
    "token": TypeRecord(17),
    "f8e8m0fnu": TypeRecord(18, since=2),
    "f4e2m1fn": TypeRecord(19, since=3),
    "i4": TypeRecord(22, since=3),
    "ptr": _record(12, "pointee:number attribute:attribute?", mask_since=4),
    "tile": _record(13, "element:element shape:extents"),
    "tensor_view": _record(
        14, "element:number shape:i64s strides:i64s attribute:attribute?", mask_since=4
    ),
    "partition_view": _record(
        15, "tile:i32_extents tensor_view:tensor dim_map:i32s padding:padding?", mask_since=3
    ),
    "function": _record(16, "parameters:types results:types"),
    "gather_scatter_view": _record(
        20, "tile:i32_extents tensor_view:tensor sparse_dim:varint padding:padding?", 3, 3
    ),
    "strided_view": _record(
        21, "tile:i32_extents traversal:i32s tensor_view:tensor dim_map:i32s padding:padding?", 3, 3
    ),
}

FIELD_NAMES = {kind: tuple(n for n, _ in record.fields) for kind, record in TYPES.items()}
TAGS = {record.tag: kind for kind, record in TYPES.items()}

ITEM_BITS = {"i1": 8, "i4": 4, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "f16": 16, "bf16": 16,
             "f32": 32, "tf32": 32, "f64": 64, "f8e4m3fn": 8, "f8e5m2": 8, "f8e8m0fnu": 8,
             "f4e2m1fn": 4, "ptr": 64}  # fmt: skip
"""Bits of an element in memory."""

ROLES: dict[str, tuple[str, ...]] = {
    "number": tuple(kind for kind in ITEM_BITS if kind not in ("ptr", "i4")),
    "element": tuple(ITEM_BITS),
    "tensor": ("tensor_view",),
}
"""By codec of a type in a type, the kinds that it may have."""

TOKEN = Type("token")


def tile(element: str | Type, *shape: int) -> Type:
    """A tile; a scalar without a shape."""
    return Type("tile", (Type(element) if isinstance(element, str) else element, shape))


def pointer(element: str) -> Type:
    """A pointer to elements."""
    return Type("ptr", (Type(element), None))


def is_view(kind: Type) -> bool:
    """Whether tiles can be loaded from it."""
    return kind.kind in ("partition_view", "strided_view", "gather_scatter_view")


def _extents(shape: tuple[int, ...]) -> str:
    return "".join("?x" if n == DYNAMIC else f"{n}x" for n in shape)


def _strides(found: Type) -> str:
    return ", ".join("?" if s == DYNAMIC else str(s) for s in found["strides"])


def _view(found: Type) -> str:
    sizes = "x".join(map(str, found["tile"]))
    rest = [f"{name}={value}" for name, value in zip(FIELD_NAMES[found.kind], found.fields,
            strict=True) if name not in ("tile", "tensor_view") and value is not None]  # fmt: skip
    return f"{found.kind}<{sizes}, {', '.join([*rest, str(found['tensor_view'])])}>"


_TEXT = {
    "ptr": lambda t: f"ptr<{t['pointee']}>",
    "tile": lambda t: f"tile<{_extents(t['shape'])}{t['element']}>",
    "tensor_view": lambda t: (
        f"tensor_view<{_extents(t['shape'])}{t['element']}, strides=[{_strides(t)}]>"
    ),
    "partition_view": _view,
    "gather_scatter_view": _view,
    "strided_view": _view,
    "function": lambda t: f"({', '.join(map(str, t['parameters']))})",
}
