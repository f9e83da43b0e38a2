"""The number formats of NKI 0.1 – 0.7: one row each, one object each.

Sources: NKI API common fields (supported data types), NKI data-type reference pages; OCP 8-bit
floating point and OCP microscaling (MX) formats for the fn, e8m0 and packed types.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np


class Kind(enum.Enum):
    """The meaning of a format's bits."""

    BOOL = "bool"
    INT = "int"
    UINT = "uint"
    FLOAT = "float"
    SCALE = "scale"  # a power of two without sign or zero: the block scale of MX
    PACKED = "packed"  # four narrow floats in one storage word


class Specials(enum.Enum):
    """Which codes of a float format are not finite numbers."""

    IEEE = "the top exponent is infinity and NaN"
    NAN_ONLY = "only all-ones is NaN; no infinity"
    NONE = "every code is a finite number"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DType:
    """One NKI number format. There is exactly one object per format: compare with `is`.

    `bits` are the bits of one stored element, `itemsize` its bytes in memory, `storage` the NumPy
    dtype that holds it. `exponent_bits` and `mantissa_bits` (without the hidden one) are 0 where
    they mean nothing; a packed type has them in its `element`. `max` and `min` are the
    largest and smallest finite values. `since` is the first NKI version with the type.
    """

    name: str
    kind: Kind
    bits: int
    storage: np.dtype
    since: str
    exponent_bits: int = 0
    mantissa_bits: int = 0
    specials: Specials = Specials.NONE
    lanes: int = 1
    max: float = field(init=False)
    min: float = field(init=False)
    _lane: DType | None = None

    def __post_init__(self) -> None:
        low, high = _RANGES[self.kind](self)
        object.__setattr__(self, "min", low)
        object.__setattr__(self, "max", high)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"nki_dtypes.{self.name}"

    def __reduce__(self) -> tuple[object, ...]:
        return _interned, (self.name,)

    def __copy__(self) -> DType:
        return self

    def __deepcopy__(self, memo: object) -> DType:
        return self

    @property
    def itemsize(self) -> int:
        """Bytes of one element in memory."""
        return self.storage.itemsize

    @property
    def dtype(self) -> np.dtype:
        """NumPy's dtype of `np.zeros(8, nki_dtypes.bfloat16)`: `words`, so that kernels take the
        array as one of this type.
        """
        return self.words

    @property
    def words(self) -> np.dtype:
        """A dtype for arrays of a packed type that says which one: a record of one field.

        NumPy has no such types; `storage` alone does not tell float8_e4m3fn_x4 from float8_e5m2_x4.
        Any other type has its `storage`.

        >>> float8_e4m3fn_x4.words
        dtype([('float8_e4m3fn_x4', '<u4')])
        """
        return np.dtype([(self.name, self.storage)]) if self.is_packed else self.storage

    @property
    def element(self) -> DType:
        """The format of one lane of a packed type; any other type is its own element."""
        return self._lane or self

    @property
    def is_float(self) -> bool:
        """Whether elements are floating-point numbers (scales and packed types are not)."""
        return self.kind is Kind.FLOAT

    @property
    def is_integer(self) -> bool:
        """Whether elements are signed or unsigned integers (bool_ is not)."""
        return self.kind in (Kind.INT, Kind.UINT)

    @property
    def is_packed(self) -> bool:
        """Whether one stored word holds several numbers."""
        return self.kind is Kind.PACKED

    @property
    def exponent_bias(self) -> int:
        """b in value = 2^(exponent code - b) · significand; 0 without an exponent."""
        return max((1 << self.exponent_bits >> 1) - 1, 0)


# A format is one value: dataclasses.asdict() of an object with a dtype must not take it apart.
del DType.__dataclass_fields__  # type: ignore[attr-defined]


def _float_range(d: DType) -> tuple[float, float]:
    top_code = (1 << d.exponent_bits) - (2 if d.specials is Specials.IEEE else 1)
    ulps_below_two = 2 if d.specials is Specials.NAN_ONLY else 1
    significand = 2.0 - ulps_below_two * 2.0**-d.mantissa_bits
    largest = significand * 2.0 ** (top_code - d.exponent_bias)
    return -largest, largest


def _packed_range(d: DType) -> tuple[float, float]:
    return d.element.min, d.element.max


_RANGES: dict[Kind, Callable[[DType], tuple[float, float]]] = {
    Kind.BOOL: lambda d: (0, 1),
    Kind.INT: lambda d: (-(1 << d.bits - 1), (1 << d.bits - 1) - 1),
    Kind.UINT: lambda d: (0, (1 << d.bits) - 1),
    Kind.FLOAT: _float_range,
    Kind.SCALE: lambda d: (2.0**-127, 2.0**127),
    Kind.PACKED: _packed_range,
}


def _ml(name: str) -> np.dtype:
    """The ml_dtypes type, or raw bytes where an old ml_dtypes lacks it (`casts` then raises)."""
    return np.dtype(getattr(ml_dtypes, name, np.uint8))


def _integer(name: str, since: str = "0.1") -> DType:
    storage = np.dtype(name)
    kind = Kind.INT if storage.kind == "i" else Kind.UINT
    return DType(name, kind, 8 * storage.itemsize, storage, since)


def _float(
    name: str,
    bits: int,
    layout: tuple[int, int],
    since: str,
    storage: np.dtype,
    specials: Specials = Specials.IEEE,
) -> DType:
    exponent, mantissa = layout
    return DType(name, Kind.FLOAT, bits, storage, since, exponent, mantissa, specials)


class _Packed(DType):
    """Four narrow floats in one word, equal to the dtype of arrays of it (DType.words)."""

    def __hash__(self) -> int:
        return hash(self.words)


def _packed(lane: DType, since: str) -> DType:
    """Four lanes in the unsigned word that is just wide enough, so one element is one item."""
    storage = np.dtype(f"uint{4 * lane.bits}")
    name = f"{lane.name}_x4"
    return _Packed(name, Kind.PACKED, 4 * lane.bits, storage, since, lanes=4, _lane=lane)


bool_: DType = DType("bool_", Kind.BOOL, 8, np.dtype(np.uint8), "0.1")
int8: DType = _integer("int8")
int16: DType = _integer("int16")
int32: DType = _integer("int32")
uint8: DType = _integer("uint8")
uint16: DType = _integer("uint16")
uint32: DType = _integer("uint32")
int64: DType = _integer("int64", "0.7")
uint64: DType = _integer("uint64", "0.7")
float16: DType = _float("float16", 16, (5, 10), "0.1", np.dtype(np.float16))
bfloat16: DType = _float("bfloat16", 16, (8, 7), "0.1", _ml("bfloat16"))
float32: DType = _float("float32", 32, (8, 23), "0.1", np.dtype(np.float32))
# The low 13 mantissa bits of the float32 that stores a tfloat32 are zero.
tfloat32: DType = _float("tfloat32", 32, (8, 10), "0.1", np.dtype(np.float32))
float8_e4m3: DType = _float("float8_e4m3", 8, (4, 3), "0.1", _ml("float8_e4m3"))
float8_e4m3fn: DType = _float(
    "float8_e4m3fn", 8, (4, 3), "0.2", _ml("float8_e4m3fn"), Specials.NAN_ONLY
)
float8_e5m2: DType = _float("float8_e5m2", 8, (5, 2), "0.1", _ml("float8_e5m2"))
float8_e8m0fnu: DType = DType(
    "float8_e8m0fnu", Kind.SCALE, 8, _ml("float8_e8m0fnu"), "0.5", 8, 0, Specials.NAN_ONLY
)
# Only ever a lane of float4_e2m1fn_x4: no NKI tensor has this type, so it is not in ALL.
float4_e2m1fn: DType = _float(
    "float4_e2m1fn", 4, (2, 1), "0.2", _ml("float4_e2m1fn"), Specials.NONE
)
float8_e5m2_x4: DType = _packed(float8_e5m2, "0.2")
float8_e4m3fn_x4: DType = _packed(float8_e4m3fn, "0.2")
float4_e2m1fn_x4: DType = _packed(float4_e2m1fn, "0.2")

ALL: tuple[DType, ...] = (
    bool_, int8, int16, int32, uint8, uint16, uint32,
    float16, bfloat16, float32, tfloat32,
    float8_e4m3, float8_e4m3fn, float8_e5m2, float8_e8m0fnu,
    float8_e5m2_x4, float8_e4m3fn_x4, float4_e2m1fn_x4,
)  # fmt: skip
"""Every format that an NKI tensor can have and an engine computes with."""

WIDE: tuple[DType, ...] = (int64, uint64)
"""Formats of 64 bits: memory holds them and DMA moves them, no engine computes with them. Their
names are NumPy's defaults, so that `resolve` takes them only on request."""

_BY_NAME: dict[str, DType] = {d.name: d for d in (*ALL, *WIDE, float4_e2m1fn)}


def _interned(name: str) -> DType:
    """The one object of that name: what unpickling returns."""
    return _BY_NAME[name]
