"""fp8 and tf32 arrays, casts between floats and integers, and bits seen as another type."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from nki_dtypes import cast, resolve
from nkigen_lite.compiler.compile import compile
from nkigen_lite.ir import Builder
from nkigen_lite.tensors.spec import as_spec

FP8 = ("float8_e4m3", "float8_e4m3fn", "float8_e5m2")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32")


def every_finite(name: str) -> np.ndarray:
    """All finite numbers of an 8-bit format, in rows of 16; NaN and infinities as 1."""
    kind = np.dtype(getattr(ml_dtypes, name))
    x = np.arange(256, dtype=np.uint8).view(kind).reshape(16, 16)
    return np.where(np.isfinite(x.astype(np.float32)), x, kind.type(1))


def rounded(values: np.ndarray, name: str) -> np.ndarray:
    """float32 values in the format, as the machine rounds them."""
    return cast(np.asarray(values, np.float32), resolve(name), from_=resolve("f32"))


@pytest.mark.parametrize("name", FP8)
def test_fp8_is_computed_in_float32_and_rounded_once(exactly, name):
    x = every_finite(name)
    exactly(lambda x: (x.astype(np.float32) * 3, x.astype(np.float16), np.abs(x), -x, x > 1), x)

    kernel = exactly(lambda x, y: np.maximum(x, y), x, x[::-1].copy())
    assert kernel.program.parameters[0].dtype is resolve(name)


@pytest.mark.parametrize("name", FP8)
def test_fp8_sums_and_products_round_once(name, source_results, tmp_path):
    x, y = every_finite(name), every_finite(name)[::-1].copy()
    wide = [a.astype(np.float32) for a in (x, y)]
    expected = [wide[0] + wide[1], wide[0] * 0.5, wide[0].max(-1)]

    kernel = compile(lambda x, y: (x + y, x * x.dtype.type(0.5), x.max(-1)), x, y)

    written = source_results(kernel, tmp_path, (x, y))
    for ours, again, exact in zip(kernel(x, y), written, expected, strict=True):
        assert ours.tobytes() == rounded(exact, name).tobytes()
        assert ours.tobytes() == np.asarray(again).tobytes()


def test_tf32_arrays_are_kept_and_computed_in_float32(source_results, tmp_path, normal):
    x = rounded(normal(130, 20), "tf32")
    kernel = compile(lambda x: (x * 2 + 1, np.where(x > 0, x, 0), x.T), "tf32[130, 20]")

    doubled, positive, transposed = source_results(kernel, tmp_path, (x,))
    assert (doubled == np.float32(x) * 2 + 1).all()
    assert (positive == np.where(x > 0, x, 0)).all()
    assert (transposed == x.T).all()


@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", ["float32", "float16", "bfloat16", *FP8])
def test_floats_are_cut_to_integers_they_fit(exactly, source, target):
    info = np.iinfo(target)
    numbers = np.linspace(max(info.min, -200), min(info.max, 200), 130 * 7).reshape(130, 7)
    kind = getattr(ml_dtypes, source, None) or np.dtype(source)
    x = np.clip(numbers, -200, 200).astype(kind)
    wide = x.astype(np.float32)
    x = np.where((wide > info.max) | (wide < info.min), x.dtype.type(0), x)
    exactly(lambda x: x.astype(target), x)


@pytest.mark.parametrize("source", ["float32", "int32", "uint32"])
def test_large_numbers_between_floats_and_32_bit_integers(exactly, source):
    edges = [0, 1, 2**24 - 1, 2**24, 2**24 + 1, 2**31 - 128, 2**30 + 64, 2**31 - 64, 123456789]
    with np.errstate(all="ignore"):
        x = np.array([e for e in edges if source != "float32" or e < 2**31 - 64]).astype(source)
    exactly(lambda x: (x.astype(np.float32), x.astype(np.int32), x.astype(np.uint32)), x)


def test_bits_are_seen_as_another_type(of_graph, source_results, tmp_path, normal):
    build = Builder("bits")
    x = build.input(as_spec("f32[130, 20]"))
    doubled = build.emit("multiply", x, build.fill(2.0, resolve("f32")))
    seen = build.emit("bitcast", doubled, dtype="uint32")
    masked = build.emit("bitwise_and", seen, build.fill(0xFFFF0000, resolve("uint32")))
    back = build.emit("bitcast", masked, dtype="f32")
    graph = build.finish((seen, back, build.emit("bitcast", x, dtype="int32")))
    given = normal(130, 20)
    written = source_results(of_graph(graph), tmp_path, (given,))

    bits = (given * 2).view(np.uint32)
    assert (written[0] == bits).all()
    assert (written[1] == (bits & 0xFFFF0000).view(np.float32)).all()
    assert (written[2] == given.view(np.int32)).all()
