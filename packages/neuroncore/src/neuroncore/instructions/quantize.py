"""quantize_mx: 16-bit floats as packed fp8 with one scale for every 32 of them, on VectorE (gen4).

src (P, F), dst (P, F / 4) packed, dst_scale as _mx.py says.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from neuroncore.enums import SBUF, Engine
from neuroncore.errors import ShapeError
from neuroncore.instructions._cost import one_pass
from neuroncore.instructions._mx import (
    BIAS,
    GROUP_PARTITIONS,
    LANES,
    NAN_SCALE,
    SCALE_ROWS,
    SCALES,
    scale_rows,
    scales_fit,
    whole_quadrants,
)
from neuroncore.instructions._numerics import like, reader
from neuroncore.instructions._record import Call, Example, In, Instruction, Limit, Out
from neuroncore.instructions._rules import from_generation, rule, same_partitions
from neuroncore.memory import View
from nki_dtypes import bfloat16, finfo, float8_e4m3fn_x4, float8_e5m2_x4, float16, pack_x4

RULE = "NKI: quantize_mx"
_LARGEST_EXPONENT = {float8_e4m3fn_x4: 8, float8_e5m2_x4: 15}


def quantize_mx(c: Call) -> Callable[..., None]:
    """dst = src / 2^X rounded to fp8 and packed; dst_scale = X + 127 for 8 partitions x 4 elements.

    X = floor(log2(largest magnitude)) - (Emax - 1) from 0.5 on, where nothing saturates; before,
    - Emax, and dst saturates. X is -127 where all are zero, at least -127 everywhere. A group with
    an infinity or NaN has the scale NaN (255): no document says what hardware does.
    """
    groups, columns = c.src.partitions // GROUP_PARTITIONS, c.src.free // LANES
    read = reader(c.src, (groups, GROUP_PARTITIONS, columns, LANES))
    room = _LARGEST_EXPONENT[c.dst.dtype] - (1 if c.version >= (0, 5) else 0)
    most = np.float32(finfo(c.dst.dtype.element).max)
    rows, free_shape = scale_rows(c.src.partitions), c.dst_scale.shape[1:]
    scale_kind = c.dst_scale.storage

    def quantize(dst: View, src: View, dst_scale: View) -> None:
        values = read(src)
        largest = np.abs(values).max(axis=(1, 3))
        sound = np.isfinite(largest)
        _, above = np.frexp(np.where(sound, largest, 1))
        exponents = np.where(largest == 0, -BIAS, np.maximum(above - 1 - room, -BIAS))
        fitted = np.ldexp(values, -exponents[:, None, :, None])
        np.clip(fitted, -most, most, out=fitted)
        words = pack_x4(fitted.reshape(c.src.partitions, c.src.free), c.dst.dtype)
        dst.array[...] = words.reshape(dst.shape)
        codes = np.where(sound, exponents + BIAS, NAN_SCALE).astype(np.uint8)
        dst_scale.array[rows] = codes.view(scale_kind).reshape(-1, *free_shape)

    return quantize


_SCALES_FIT = scales_fit("src", "dst_scale")

QUANTIZE_MX = Instruction(
    name="quantize_mx",
    engines=(Engine.vector,),
    operands={
        "dst": Out("P F/4", SBUF, dtypes=frozenset(_LARGEST_EXPONENT)),
        "src": In("P F", SBUF, dtypes=frozenset({float16, bfloat16})),
        "dst_scale": Out("P F/4", SBUF, dtypes=SCALES, own_start=True),
    },
    limits=[
        same_partitions("src", "dst", dst="float8_e4m3fn_x4[64, 2] sbuf"),
        whole_quadrants("src", src="bfloat16[16, 8] sbuf", dst="float8_e4m3fn_x4[16, 2] sbuf"),
        rule(
            lambda c: c.src.free == LANES * c.dst.free, ShapeError, "dst",
            "dst has {it.free} elements per partition", expected="a quarter of src's {c.src.free}",
            got="{it!r} of {c.src!r}", section="tile size", src="bfloat16[32, 9] sbuf",
        ),
        Limit(_SCALES_FIT, {"dst_scale": "uint8[4, 3] sbuf"}),
        from_generation(4, "dst", "trn2"),
        Limit(_SCALES_FIT, {"dst_scale": "uint8[4, 2] sbuf @5"}),
        Limit(_SCALES_FIT, {"dst_scale": "float8_e8m0fnu[4, 2] sbuf", "version": (0, 4)}),
    ],
    work=lambda c: one_pass(c, c.src.free / 4),  # [Trainium3 architecture guide]
    run=quantize_mx,
    result=like("dst"),
    covers=lambda c: False,  # most of dst_scale stays as it is
    moves_bits=lambda c: True,
    rows={"dst_scale": SCALE_ROWS},
    examples=[
        Example({"dst": "float8_e4m3fn_x4[32, 2] sbuf", "dst_scale": "uint8[4, 2] sbuf",
                 "src": ("sbuf bfloat16", np.ones((32, 8))), "target": "trn3"},
                {"dst": np.full((32, 2), 0x70707070), "dst_scale": np.full((4, 2), 120)},
                note="1 = 128 · 2^-7: scale byte 120, and 128 is 0x70 in float8_e4m3fn"),
    ],
)  # fmt: skip
