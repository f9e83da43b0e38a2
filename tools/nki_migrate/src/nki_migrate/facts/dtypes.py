"""Dtypes as the kernel spells them, and what 0.1 promotes two of them to (trap T8)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

FLOAT32 = "float32"
BOOL = "bool_"


@dataclass(frozen=True, slots=True)
class DType:
    """A dtype: `text` is how to write it here, `key` decides equality.

    `key` is a dtype's own name ("float32") or, for a dtype known only at run time, the
    expression that names it at its origin ("x.dtype"). `is_float` is None when the source
    does not tell.
    """

    text: str
    key: str
    names: frozenset[tuple[str, int]] = field(default=frozenset(), compare=False)  # in the text

    @property
    def is_known(self) -> bool:
        """Whether the source says which dtype it is."""
        return self.key in _RANK or self.key in _INTEGERS

    @property
    def is_float(self) -> bool | None:
        """Whether it is a floating type; None for a dtype known only at run time."""
        return self.key in _RANK if self.is_known else None


_RANK = {
    "float8_e4m3": 1,
    "float8_e5m2": 1,
    "float8_e4m3fn": 1,
    "float16": 2,
    "bfloat16": 2,
    "tfloat32": 3,
    "float32": 3,
}
_INTEGERS = {
    BOOL: 8,
    "uint8": 8,
    "int8": 8,
    "uint16": 16,
    "int16": 16,
    "uint32": 32,
    "int32": 32,
}

# NumPy spellings in kernel code → nl names (rule NKI1147)
NUMPY_NAMES = {
    "float32": "float32",
    "single": "float32",
    "float16": "float16",
    "half": "float16",
    "int8": "int8",
    "int16": "int16",
    "int32": "int32",
    "uint8": "uint8",
    "uint16": "uint16",
    "uint32": "uint32",
    "bool_": "bool_",
}


def item_size(dtype: DType | None) -> int | None:
    """Bytes of an element; None for a dtype that the source does not tell."""
    if dtype is None or not dtype.is_known:
        return None
    bits = re.search(r"\d+", dtype.key)
    return int(bits[0]) // 8 if bits else 1


def promote(a: DType, b: DType, spell_float32: str) -> DType | None:
    """The dtype of a binary operation on two tiles; None when the source does not decide it.

    NKI guide, type promotion: float beats int, the wider float wins, float16 with bfloat16 and two
    different fp8 kinds go one step up. A bool_ counts as uint8 beside anything else. Source:
    migration facts, section 4.
    """
    if a.key == b.key:
        return a
    uint8 = DType(spell_float32.replace(FLOAT32, "uint8"), "uint8")
    a, b = (uint8 if d.key == BOOL else d for d in (a, b))
    for dtype in (a, b):
        if dtype.key == FLOAT32:  # nothing is wider, so float32 wins over the unknown as well
            return dtype
    if not (a.is_known and b.is_known):
        return None
    if a.is_float != b.is_float:
        return a if a.is_float else b
    promote_alike = _promote_floats if a.is_float else _promote_integers
    return promote_alike(a, b, spell_float32)


def _promote_floats(a: DType, b: DType, spell_float32: str) -> DType:
    if _RANK[a.key] != _RANK[b.key]:
        return max(a, b, key=lambda d: _RANK[d.key])
    if _RANK[a.key] == 1:
        return DType(spell_float32.replace(FLOAT32, "bfloat16"), "bfloat16")
    return DType(spell_float32, FLOAT32)


def _promote_integers(a: DType, b: DType, spell_float32: str) -> DType | None:
    bits_a, bits_b = _INTEGERS[a.key], _INTEGERS[b.key]
    signed_a, signed_b = (not k.key.startswith("u") for k in (a, b))
    if signed_a == signed_b:
        return a if bits_a >= bits_b else b
    signed, signed_bits = (a, bits_a) if signed_a else (b, bits_b)
    unsigned_bits = bits_b if signed_a else bits_a
    if signed_bits > unsigned_bits:
        return signed
    wider = {8: "int16", 16: "int32", 32: FLOAT32}[unsigned_bits]
    return DType(spell_float32.replace(FLOAT32, wider), wider)


def with_scalar(tile: DType, scalar_is_float: bool | None, spell_float32: str) -> DType | None:
    """The dtype of tile ∘ number; None when the source does not decide it.

    Python numbers are weak: a float counts as float32, which is as wide as any tile, an int as
    int32, which any floating tile beats. `scalar_is_float` is None for a number of unknown kind.
    Source: NKI guide, type promotion (0.1).
    """
    if scalar_is_float or tile.key == FLOAT32:
        return DType(spell_float32, FLOAT32)
    if scalar_is_float is None or tile.is_float is None:
        return None
    if tile.is_float:
        return tile
    return promote(tile, DType(spell_float32.replace(FLOAT32, "int32"), "int32"), spell_float32)
