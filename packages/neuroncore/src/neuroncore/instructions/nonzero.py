"""nonzero_with_count: where a row is not zero, and how often, on GpSimdE (gen3).

src (P, F), dst (P, F + 1). GpSimdE's processors see the first of their 16 partitions: 0, 16, 32, …
of the tiles are read and written, the others are not touched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from neuroncore.effects import Rows
from neuroncore.enums import SBUF, Engine, MemorySpace
from neuroncore.errors import AttributeValueError, ShapeError
from neuroncore.instructions._convert import whole
from neuroncore.instructions._cost import guessed
from neuroncore.instructions._numerics import Result, raw_reader
from neuroncore.instructions._record import Attr, Call, Example, In, Instruction, Limit, Out
from neuroncore.instructions._rules import from_generation, rule, same_partitions
from neuroncore.memory import View
from neuroncore.targets import GPSIMD_PARTITIONS
from nki_dtypes import float32, int32


def nonzero_with_count(c: Call) -> Callable[..., None]:
    """dst[p] = places of the nonzero elements of src[p] + index_offset, padding_val …, their count.

    For p = 0, 16, 32, … of the tiles; other partitions of dst keep what they hold.
    """
    read = raw_reader(c.src, (c.src.partitions, c.src.free))
    width, shape = c.dst.free, (c.dst.partitions, c.dst.free)

    def find(dst: View, src: View) -> None:
        rows = read(src)
        filled = dst.array.reshape(shape).copy()
        for p in range(0, len(rows), GPSIMD_PARTITIONS):
            places = np.flatnonzero(rows[p])
            filled[p, : len(places)] = places + c.index_offset
            filled[p, len(places) : width - 1] = c.padding_val
            filled[p, width - 1] = len(places)
        dst.array[...] = filled.reshape(dst.shape)

    return find


def _fits_int32(name: str, most: Callable[[Call], int], **breaks: Any) -> Limit:
    """The number, and the largest that it becomes, is an int32."""
    return rule(
        lambda c: getattr(c, name) >= -(2**31) and most(c) < 2**31,
        AttributeValueError, name, "{name} {it} makes numbers beyond int32", expected="int32",
        got=lambda c: f"{getattr(c, name)} to {most(c)}", section=name,
        **breaks,
    )  # fmt: skip


def _result(c: Call) -> Result:
    return (c.src.partitions, c.src.free + 1), int32, MemorySpace.sbuf


_SRC = np.zeros((32, 4))
_SRC[0], _SRC[16], _SRC[1] = [0, 5, 0, -1], [0, 0, 0, 0], 7
_FOUND = np.full((32, 5), 4)  # what new memory holds where nothing is written
_FOUND[0], _FOUND[16] = [11, 13, -1, -1, 2], [-1, -1, -1, -1, 0]

NONZERO_WITH_COUNT = Instruction(
    name="nonzero_with_count",
    engines=(Engine.gpsimd,),
    operands={
        "dst": Out("P F+1", SBUF, dtypes=frozenset({int32})),
        "src": In("P F", SBUF, dtypes=frozenset({float32, int32})),
    },
    attrs={
        "index_offset": Attr(0, whole("index_offset")),
        "padding_val": Attr(-1, whole("padding_val")),
    },
    limits=[
        same_partitions("dst", "src", src="float32[64, 4] sbuf"),
        rule(
            lambda c: c.dst.free == c.src.free + 1,
            ShapeError, "dst", "dst has {c.dst.free} elements per partition",
            expected=lambda c: f"{c.src.free + 1}: one more than src, for the count",
            got="dst: shape {c.dst!r}; src: shape {c.src!r}", section="shapes",
            dst="int32[32, 4] sbuf",
        ),
        _fits_int32(
            "index_offset", lambda c: c.index_offset + c.src.free - 1, index_offset=2**31 - 1
        ),
        _fits_int32("padding_val", lambda c: c.padding_val, padding_val=2**31),
        from_generation(3, "dst", "trn1"),
    ],
    work=guessed,
    run=nonzero_with_count,
    result=_result,
    covers=lambda c: False,
    rows={"dst": Rows(1, GPSIMD_PARTITIONS), "src": Rows(1, GPSIMD_PARTITIONS)},
    examples=[
        Example({"dst": "int32[32, 5] sbuf", "src": _SRC, "index_offset": 10}, {"dst": _FOUND},
                note="partitions 0 and 16 only; the last number of a row counts"),
    ],
)  # fmt: skip
