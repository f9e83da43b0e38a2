"""Numbers in other dtypes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nki_dtypes import DType
from nkigen_lite.ops._record import (
    BITS,
    DTYPE,
    Kind,
    Op,
    broadcast,
    given_dtype,
    mismatch,
    of_kinds,
)


def _narrower(dtypes: tuple[DType, ...], attrs: Mapping[str, Any]) -> DType:
    old, new = of_kinds(*BITS)(dtypes, attrs), attrs["dtype"]
    if not new.is_integer or new.bits >= old.bits:
        raise mismatch(f"the low bits of {old} as {new}", expected="a narrower integer")
    return given_dtype(dtypes, attrs)


def _identity(x: np.ndarray) -> np.ndarray:
    return x


CONVERSIONS: tuple[Op, ...] = tuple(
    Op(
        name, Kind.elementwise, ("x",), _identity, broadcast, dtype, {"dtype": DTYPE},
        frozenset({"dtype"}),
    )
    for name, dtype in (("cast", given_dtype), ("convert", given_dtype), ("low_bits", _narrower))
)  # fmt: skip
"""`cast` is NumPy's astype: floats become integers by truncation, integers wrap. `convert` is the
machine's: floats are rounded to the nearest even integer, and everything saturates
(`nki_dtypes.cast`). `decompose` leaves only `convert`, and makes `low_bits`: an integer modulo the
range of a narrower one."""
