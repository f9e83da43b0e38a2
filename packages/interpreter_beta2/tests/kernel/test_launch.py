"""Arrays in, arrays out."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from neuroncore.errors import DTypeError, ImmutableError, LaunchError, MemorySpaceError
from nki_beta2 import BACKEND

NUMBERS = {
    "bool": np.bool_,
    "int8": np.int8,
    "uint32": np.uint32,
    "float16": np.float16,
    "float32": np.float32,
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3": ml_dtypes.float8_e4m3,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
}


def fill(lang, x, value):
    """Write `value` everywhere into x, a tensor in HBM."""
    tile = lang.nl.ndarray(x.shape, dtype=x.dtype)
    lang.nisa.memset(tile, value)
    lang.nisa.dma_copy(dst=x, src=tile)


@pytest.mark.parametrize("dtype", NUMBERS.values(), ids=NUMBERS)
def test_arrays_keep_their_dtype_and_bits(every, dtype):
    x = np.array([[0, 1, 1, 0], [1, 0, 0, 1]]).astype(dtype)

    result = every.run(lambda x: every.out(every.tile(x)), x)

    assert result.dtype == x.dtype
    assert np.array_equal(result.view(np.uint8), x.view(np.uint8))


def test_an_argument_is_a_tensor_in_hbm(every):
    seen = every.run(lambda x: (x.shape, str(x.dtype), x.buffer.on_chip), np.zeros((2, 3), "f4"))

    assert seen == ((2, 3), "float32", False)


def test_a_result_is_a_tensor_a_tuple_a_list_or_a_dict(now, ramp):
    for shape in (lambda t: t, lambda t: (t, t), lambda t: [t], lambda t: {"y": t, "n": 3}):
        result = now.run(lambda x, shape=shape: shape(now.out(x)), ramp)
        expected = shape(ramp)

        assert type(result) is type(expected)
        assert str(result) == str(expected)


def test_a_kernel_may_return_nothing(now):
    assert now.run(lambda: None) is None


def test_tuples_and_dicts_of_arrays_are_arguments(every, ramp):
    def kernel(pair, named):
        return every.out(pair[1]), every.out(named["x"]), pair[0]

    second, x, number = every.run(kernel, (3, ramp), named={"x": 2 * ramp})

    assert np.array_equal(second, ramp)
    assert np.array_equal(x, 2 * ramp)
    assert number == 3


def test_lists_are_arguments_in_0_2_and_from_0_7_on(every, ramp):
    def kernel(xs):
        return every.out(xs[0])

    if every.version in ("0.2", "0.7"):
        assert np.array_equal(every.run(kernel, [ramp]), ramp)
    else:
        with pytest.raises(LaunchError, match=r"(?s)argument xs is a list.*a tuple"):
            every.run(kernel, [ramp])


def test_other_arguments_are_passed_as_they_are(every):
    given = (2, 1.5, "name", None, True, every.nl.float32, np.float32(0.5))
    seen = []

    every.run(lambda *args: seen.extend(args), *given)

    assert all(a is b for a, b in zip(seen, given, strict=True))


# -- inputs that the kernel writes -----------------------------------------------------------------


def test_an_input_is_updated_in_place(every, ramp):
    every.run(lambda x: fill(every, x, 7.0), ramp)

    assert np.array_equal(ramp, np.full((4, 8), 7.0))


@pytest.mark.parametrize(
    "part",
    [np.s_[:, ::2], np.s_[::-1], np.s_[1:3, 2:5], np.s_[:, 3:4]],
    ids=str,
)
def test_an_input_that_is_no_dense_array_is_updated_in_place(every, ramp, part):
    expected = ramp.copy()
    expected[part] = 7.0

    every.run(lambda x: fill(every, x, 7.0), ramp[part])

    assert np.array_equal(ramp, expected)


def test_an_input_in_column_order_is_updated_in_place(every):
    x = np.asfortranarray(np.zeros((4, 8), np.float32))

    every.run(lambda x: fill(every, x, 7.0), x)

    assert (x == 7.0).all()


def test_a_returned_input_is_the_callers_array(every, ramp):
    def kernel(x):
        fill(every, x, 7.0)
        return x

    result = every.run(kernel, ramp)

    assert np.array_equal(result, ramp)
    assert (ramp == 7.0).all()


def test_inputs_inside_tuples_are_updated_too(every, ramp):
    every.run(lambda pair: fill(every, pair[0], 7.0), (ramp,))

    assert (ramp == 7.0).all()


def test_a_result_is_not_the_input_it_was_copied_from(every, ramp):
    result = every.run(lambda x: every.out(x), ramp)
    result[:] = 0

    assert ramp[3, 7] == 31


def test_a_read_only_array_is_read(every, ramp):
    ramp.flags.writeable = False

    assert np.array_equal(every.run(lambda x: every.out(x), ramp), ramp)


@pytest.mark.parametrize("part", [np.s_[:], np.s_[:, ::2]], ids=str)
def test_a_read_only_array_is_not_written(every, ramp, part):
    ramp.flags.writeable = False

    with pytest.raises(ImmutableError, match="dst is read-only"):
        every.run(lambda x: fill(every, x, 7.0), ramp[part])
    assert ramp[0, 1] == 1


def test_low_precision_inputs_are_updated_where_nothing_is_rounded(speak):
    """With precise off the machine keeps bfloat16 as float32; the caller's array gets bfloat16."""
    lang = speak("0.6", precise=False)
    x = np.zeros((2, 4), ml_dtypes.bfloat16)

    result = lang.run(lambda x: (fill(lang, x, 1.5), lang.out(x))[1], x)

    assert np.array_equal(x.astype(np.float32), np.full((2, 4), 1.5))
    assert result.dtype == x.dtype
    assert np.array_equal(result.astype(np.float32), x.astype(np.float32))


# -- unusual shapes --------------------------------------------------------------------------------


def test_a_scalar_array_is_a_tensor_of_one_element(every):
    def kernel(x):
        assert x.shape == (1,)
        return every.out(x)

    assert np.array_equal(every.run(kernel, np.array(3.0, np.float32)), [3.0])


def test_a_scalar_array_is_updated_in_place(every):
    x = np.array(3.0, np.float32)

    every.run(lambda x: every.nisa.dma_copy(x, every.nl.zeros((1, 1), every.nl.float32)), x)

    assert x == 0


def test_vectors_have_one_dimension_in_hbm(every):
    x = np.arange(6, dtype=np.int32)

    assert np.array_equal(every.run(lambda x: every.out(x[2:4]), x), [2, 3])


# -- what is rejected ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "complex64", "U3", "datetime64[s]"])
def test_other_dtypes_are_rejected(every, dtype):
    with pytest.raises(DTypeError, match="is not an NKI dtype"):
        every.run(lambda x: None, np.zeros((2, 2), dtype))


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_integers_of_64_bits_are_rejected_before_0_7(every, dtype):
    wide = np.zeros((2, 2), dtype)

    if every.nki.__version__ >= "0.7":
        assert every.run(lambda x: None, wide) is None
    else:
        with pytest.raises(DTypeError, match="is not an NKI dtype"):
            every.run(lambda x: None, wide)


def test_arguments_fit_the_kernels_signature(every, ramp):
    kernel = every.nki.jit(lambda x, y: None)

    with pytest.raises(LaunchError, match="missing a required argument: 'y'"):
        kernel(ramp)
    with pytest.raises(LaunchError, match="too many positional arguments"):
        kernel(ramp, ramp, ramp)
    with pytest.raises(LaunchError, match="unexpected keyword argument 'z'"):
        kernel(ramp, ramp, z=ramp)


@pytest.mark.parametrize("module", ["torch", "jax", "jaxlib.xla_client"])
def test_other_frameworks_go_through_simulate(every, module):
    foreign = type("Tensor", (), {"__module__": module})()

    with pytest.raises(LaunchError, match=r"nki_runtime\.simulate"):
        every.run(lambda x: None, foreign)


@pytest.mark.parametrize("buffer", ["sbuf", "psum"])
def test_a_result_is_not_on_chip(every, buffer):
    nl = every.nl

    with pytest.raises(MemorySpaceError, match=f"returns a tensor in {buffer.upper()}"):
        every.run(lambda: nl.ndarray((4, 8), nl.float32, getattr(nl, buffer)))


@pytest.mark.parametrize("version", BACKEND.versions)
def test_from_0_3_on_a_result_is_in_shared_hbm(speak, version):
    lang = speak(version)
    nl = lang.nl

    def kernel():
        return (nl.zeros((2, 2), nl.float32, nl.private_hbm),)

    if version == "0.2":
        assert not lang.run(kernel)[0].any()
    else:
        with pytest.raises(MemorySpaceError, match=r"buffer=nl\.shared_hbm"):
            lang.run(kernel)


def test_a_mistake_leaves_nothing_running(every, ramp):
    def kernel(x):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        every.run(kernel, ramp)
    with pytest.raises(LaunchError, match="outside a kernel"):
        every.nl.program_id(0)
