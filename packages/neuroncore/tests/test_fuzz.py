"""Random views of random tensors against NumPy, random operations against float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuroncore.enums import Engine, MemorySpace
from neuroncore.errors import KernelError
from neuroncore.machine.core import NeuronCore
from neuroncore.options import Options

SHAPES = st.lists(st.integers(1, 6), min_size=2, max_size=4).map(tuple)
SPACES = st.sampled_from([MemorySpace.sbuf, MemorySpace.psum, MemorySpace.hbm])


@st.composite
def slices(draw, size):
    start = draw(st.integers(0, size - 1))
    return slice(start, draw(st.integers(start + 1, size)), draw(st.sampled_from([None, 1, 2, 3])))


@st.composite
def keys(draw, shape, on_chip):
    key = [draw(slices(n) | st.integers(-n, n - 1)) for n in shape]
    if on_chip and isinstance(key[0], slice):
        key[0] = slice(key[0].start, key[0].stop)
    key = key[: draw(st.integers(1, len(key)))]
    return tuple([*key, ...] if draw(st.booleans()) else key)


def numpys(array, key, on_chip):
    """What NumPy shows, with the dimensions that a tensor keeps: by the documented rule."""
    dots = key.index(...) if ... in key else len(key)
    full = [*key[:dots], *[slice(None)] * (array.ndim - len([k for k in key if k is not ...]))]
    full += key[dots + 1 :]
    kept = [n for n, k in enumerate(full) if isinstance(k, slice) or (on_chip and n == 0)]
    ints = [n for n in range(array.ndim) if n not in kept]
    while len(kept) < (2 if on_chip else 1):
        kept.append(ints.pop(0))
    wide = array[tuple(k if isinstance(k, slice) else slice(k, k + 1 or None) for k in full)]
    return wide.reshape([wide.shape[n] for n in sorted(kept)])


@st.composite
def steps(draw, view, array, on_chip):
    """One more view, taken of the tensor and of the array."""
    kind = draw(st.sampled_from(["slice", "permute", "expand", "broadcast", "reshape"]))
    if kind == "slice":
        key = draw(keys(array.shape, on_chip))
        return view[key], numpys(array, key, on_chip)
    if kind == "permute":
        rest = draw(st.permutations(range(1, array.ndim)))
        return view.permute((0, *rest)), array.transpose(0, *rest)
    dim = draw(st.integers(1, array.ndim))
    if kind == "expand" and array.ndim < 5:
        return view.expand_dim(dim), np.expand_dims(array, dim)
    if kind == "broadcast" and dim < array.ndim and array.shape[dim] == 1:
        shape = (*array.shape[:dim], 3, *array.shape[dim + 1 :])
        return view.broadcast(dim, 3), np.broadcast_to(array, shape)
    if kind == "reshape":
        shape = (array.shape[0], -1) if array.shape[0] else array.shape
        target = array.reshape(shape)
        try:
            return view.reshape(target.shape), target
        except KernelError as rejected:  # only where NumPy, too, would have to copy
            assert not np.shares_memory(target, array), rejected
    return view, array


@settings(deadline=None, max_examples=300)
@given(st.data(), SHAPES, SPACES)
def test_compositions_of_views_show_what_numpy_shows(data, shape, space):
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    view = NeuronCore().adopt(array, space)

    for _ in range(data.draw(st.integers(1, 4))):
        view, array = data.draw(steps(view, array, space.on_chip))

    assert view.shape == array.shape
    np.testing.assert_array_equal(view.array, array)
    assert view.strides == tuple(s // 4 for s in view.array.strides)
    assert view.array[(0,) * array.ndim] == view.storage.flat[view.offset]


@settings(deadline=None, max_examples=300)
@given(
    st.integers(0, 60),
    st.lists(st.tuples(st.integers(-9, 9), st.integers(1, 4)), min_size=1, max_size=4),
)
def test_a_pattern_in_hbm_is_its_definition_or_leaves_the_tensor(offset, pattern):
    t = NeuronCore().adopt(np.arange(60, dtype=np.float32).reshape(6, 10))
    counts = [n for _, n in pattern]
    elements = np.array(
        [
            offset + sum(s * i for (s, _), i in zip(pattern, at, strict=True))
            for at in np.ndindex(*counts)
        ]
    ).reshape(counts)

    if elements.min() < 0 or elements.max() > 59:
        with pytest.raises(KernelError, match="leaves the tensor"):
            t.ap(pattern, offset)
    else:
        np.testing.assert_array_equal(t.ap(pattern, offset).array, elements)


MEANING = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum,
    "minimum": np.minimum, "greater": np.greater, "less_equal": np.less_equal, "equal": np.equal,
    "logical_or": np.logical_or,
}  # fmt: skip
OPS = st.sampled_from(sorted(MEANING))
DTYPES = st.sampled_from(
    ["float32", "bfloat16", "float16", "float8_e5m2", "float8_e4m3", "int8", "int32", "uint16"]
)
LOOSE = Options(start_partition="ignore")


@st.composite
def tiles(draw, core, partitions, free):
    """A (partitions, free) tile of any bits: split, strided, in SBUF or PSUM."""
    dtype = core.allocate((1, 1), draw(DTYPES), MemorySpace.sbuf).spec.dtype
    step = draw(st.integers(1, 3))
    shape = (partitions, free * step)
    seed = draw(st.integers(0, 2**32 - 1))
    raw = np.random.default_rng(seed).integers(
        0, 256, (partitions, free * step * dtype.itemsize), np.uint8
    )
    view = core.adopt(raw.view(dtype.storage).reshape(shape), MemorySpace.sbuf)[
        :, 0 : free * step : step
    ]
    return view.reshape((partitions, 2, free // 2)) if draw(st.booleans()) and step == 1 else view


def wide(view, rounded):
    with np.errstate(invalid="ignore"):  # a signalling NaN is a NaN
        return rounded(view.array.astype(np.float64), "float32").reshape(4, 6)


def check(dst, exact, rounded):
    expected = rounded(rounded(exact, "float32"), str(dst.spec.dtype))
    np.testing.assert_array_equal(dst.array.astype(np.float64).reshape(4, 6), expected)


@settings(deadline=None, max_examples=200)
@given(st.data(), OPS)
def test_tensor_tensor_on_any_bits(nisa, rounded, data, op):
    """NaN, infinities, subnormals and saturation included."""
    core = NeuronCore(options=LOOSE)
    dst, first, second = (data.draw(tiles(core, 4, 6)) for _ in range(3))
    x, y = wide(first, rounded), wide(second, rounded)

    with np.errstate(all="ignore"):
        nisa.tensor_tensor(dst, first, second, op, Engine.vector)
        exact = MEANING[op](x, y).astype(np.float64)
        check(dst, exact, rounded)


@settings(deadline=None, max_examples=200)
@given(
    st.data(), OPS, OPS, st.booleans(), st.booleans(),
    st.floats(-1e3, 1e3, width=32), st.floats(-1e3, 1e3, width=32),
)  # fmt: skip
def test_tensor_scalar_on_any_bits(nisa, rounded, data, op0, op1, reverse0, reverse1, a, b):
    core = NeuronCore(options=LOOSE)
    dst, tile = data.draw(tiles(core, 4, 6)), data.draw(tiles(core, 4, 6))
    x = wide(tile, rounded)

    with np.errstate(all="ignore"):
        nisa.tensor_scalar(dst, tile, op0, a, reverse0, op1, b, reverse1)
        first = MEANING[op0](a, x) if reverse0 else MEANING[op0](x, a)
        first = rounded(first.astype(np.float64), "float32")
        exact = MEANING[op1](b, first) if reverse1 else MEANING[op1](first, b)
        check(dst, exact.astype(np.float64), rounded)


@pytest.mark.thorough
@settings(deadline=None, max_examples=20_000)
@given(st.data(), OPS)
def test_tensor_tensor_on_many_more_bits(nisa, rounded, data, op):
    core = NeuronCore(options=LOOSE)
    dst, first, second = (data.draw(tiles(core, 4, 6)) for _ in range(3))
    x, y = wide(first, rounded), wide(second, rounded)

    with np.errstate(all="ignore"):
        nisa.tensor_tensor(dst, first, second, op, Engine.vector)
        check(dst, MEANING[op](x, y).astype(np.float64), rounded)
