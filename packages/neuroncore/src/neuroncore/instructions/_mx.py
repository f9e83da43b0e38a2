"""MX tiles: packed data, and one power of two for every 8 partitions x 4 packed numbers (gen4).

data (P, F) packs four numbers in an element; P is 32, 64, 96 or 128. Its scales (…, F) are bytes
2^(byte - 127), 255 is NaN. The scales of data partitions 32 q … 32 q + 31 are in partitions 32 q …
32 q + 3 of the scale tile, which may itself start at partition 0, 4, 8 or 12 of the quadrant where
the data starts. Sources: NKI reference, quantize_mx; NKI deep dive on MXFP matmul; OCP MX formats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from neuroncore.effects import Rows
from neuroncore.errors import DTypeError, PartitionError, ShapeError, Violation
from neuroncore.instructions._numerics import raw_reader
from neuroncore.instructions._record import Call, Limit
from neuroncore.instructions._rules import each
from neuroncore.memory import View
from neuroncore.spec import Spec
from neuroncore.targets import QUADRANT
from nki_dtypes import float8_e8m0fnu, uint8, unpack_x4, widener

GROUP_PARTITIONS, LANES = 8, 4
SCALE_ROWS = Rows(QUADRANT // GROUP_PARTITIONS, QUADRANT)
SCALES = frozenset({uint8, float8_e8m0fnu})
BIAS, NAN_SCALE = 127, 255
_STARTS = (0, 4, 8, 12)
_POWERS = np.ldexp(np.float32(1), np.arange(256) - BIAS - (np.arange(256) == NAN_SCALE))
_POWERS[NAN_SCALE] = np.nan


def scale_rows(data_partitions: int) -> np.ndarray:
    """The partitions of a scale tile that hold scales, in the order of their groups."""
    groups = np.arange(data_partitions // GROUP_PARTITIONS)
    return groups // SCALE_ROWS.used * QUADRANT + groups % SCALE_ROWS.used


def dequantized(data: Spec, scale: Spec) -> Callable[[View, View], np.ndarray]:
    """values(data, scale): (P, F, 4) in float32, each lane times its group's scale."""
    shape, rows = (data.partitions, data.free), scale_rows(data.partitions)
    read, read_scale = raw_reader(data, shape), raw_reader(scale, (scale.partitions, scale.free))
    widen = widener(data.dtype.element)

    def values(data_view: View, scale_view: View) -> np.ndarray:
        lanes = widen(unpack_x4(read(data_view), data.dtype))
        grouped = lanes.reshape(-1, GROUP_PARTITIONS, shape[1], LANES)
        powers = _POWERS[read_scale(scale_view)[rows].view(np.uint8)]
        return (grouped * powers[:, None, :, None]).reshape(*shape, LANES)

    return values


def scales_fit(data: str, scale: str) -> Callable[[Call], Iterable[Violation]]:
    """The scale tile covers the groups of `data` (in packed elements) and lies beside it."""

    def check(c: Call) -> Iterable[Violation]:
        tile, of = c.tiles[scale], c.tiles[data]
        free = of.free if of.dtype.is_packed else of.free // LANES
        needed = int(scale_rows(of.partitions)[-1]) + 1
        rule = f"NKI: {c.record.name}, scale layout"
        if tile.free != free or not needed <= tile.partitions <= of.partitions:
            yield Violation(
                ShapeError, f"{scale} has {tile.partitions} partitions of {tile.free} elements",
                scale, expected=f"{needed} to {of.partitions} partitions of {free}",
                got=f"{scale}: shape {tile!r}; {data}: shape {of!r}", rule=rule,
            )  # fmt: skip
        if tile.start % QUADRANT not in _STARTS or tile.start // QUADRANT != of.start // QUADRANT:
            first = of.start // QUADRANT * QUADRANT
            yield Violation(
                PartitionError, f"{scale} starts at partition {tile.start}", scale,
                expected=" or ".join(str(first + s) for s in _STARTS),
                got=f"{scale}: shape {tile!r}; {data} starts at {of.start}", rule=rule,
            )  # fmt: skip
        if tile.dtype is float8_e8m0fnu and c.version < (0, 5):
            yield Violation(
                DTypeError, f"{scale} is {tile.dtype}", scale, expected="uint8",
                got="float8_e8m0fnu before NKI 0.5", rule=f"NKI 0.5: {c.record.name}, dtypes",
            )  # fmt: skip

    return check


def whole_quadrants(data: str, **breaks: Any) -> Limit:
    """P of `data` is 32, 64, 96 or 128."""
    return each(
        [data], lambda c, spec: spec.partitions % QUADRANT == 0, PartitionError,
        "{name} has {it.partitions} partitions", expected=f"a multiple of {QUADRANT}",
        hint="pad it with zeros", section="tile size", **breaks,
    )  # fmt: skip
