"""What may be an output of a kernel, and what has to be one."""

import runpy

import numpy as np
import pytest

from neuroncore.errors import KernelError, LaunchError, MemorySpaceError
from nki_beta1 import nki, nl, nt

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_an_output_is_not_made_inside_a_loop():
    @nki.jit
    def kernel(x):
        out = None
        for i in nl.affine_range(3):
            out = nl.ndarray((3, 4), dtype=x.dtype, buffer=nl.shared_hbm)
            nl.store(out[i : i + 1, :], value=nl.load(x[i : i + 1, :]))
        return out

    with pytest.raises(MemorySpaceError, match="made inside the loop over i\n") as caught:
        kernel(X)
    assert "^^^^^^^^^^^^^" in str(caught.value) and "before the loop" in str(caught.value)


@pytest.mark.parametrize("numbers", [lambda x: (x, x), lambda x: nl.static_range(2)])
def test_a_loop_that_0_1_unrolled_makes_outputs(numbers):
    @nki.jit
    def kernel(x):
        made = []
        for _ in numbers(x):
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            nl.store(out, value=nl.load(x))
            made.append(out)
        return tuple(made)

    assert len(kernel(X)) == 2


@pytest.mark.parametrize(
    "loop", ["nl.affine_range(2)", "range(2)", "enumerate(nl.affine_range(2))"]
)
def test_a_loop_that_0_1_ran_once_makes_none(loop, tmp_path):
    file = tmp_path / "kernel.py"
    file.write_text(
        "from nki_beta1 import nki, nl\n@nki.jit\ndef kernel(x):\n"
        f"    for i in {loop}:\n"
        "        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n    return out\n"
    )

    with pytest.raises(MemorySpaceError, match="made inside the loop over i"):
        runpy.run_path(str(file))["kernel"](X)


def test_a_function_makes_the_output_and_other_memory_is_made_in_loops():
    def output(x):
        return nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)

    @nki.jit
    def kernel(x):
        out = output(x)
        for i in nl.affine_range(3):
            scratch = nl.ndarray((1, 4), dtype=x.dtype, buffer=nl.private_hbm)
            tile = nl.ndarray((1, 4), dtype=x.dtype, buffer=nl.sbuf)
            tile[...] = nl.load(x[i : i + 1, :])
            nl.store(scratch, value=tile)
            nl.store(out[i : i + 1, :], value=nl.load(scratch))
        return out

    np.testing.assert_array_equal(kernel(X), X)


@pytest.mark.parametrize("pack", [lambda t: t, lambda t: (t,), lambda t: {"t": t}])
def test_private_memory_is_not_returned(pack):
    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.private_hbm)
        nl.store(out, value=nl.load(x))
        return pack(out)

    with pytest.raises(MemorySpaceError, match="kernel kernel returns a tensor in PRIVATE_HBM"):
        kernel(X)


def changing(returns, by_name=False):
    @nki.jit
    def kernel(x, y: nt.mutable_tensor):
        nl.store(y, value=nl.load(x) + 1.0)
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, value=nl.load(x))
        return returns(out, y)

    y = np.zeros_like(X)
    kernel(X, y=y) if by_name else kernel(X, y)
    return y


@pytest.mark.parametrize("returns", [lambda out, y: y, lambda out, y: (out, y)])
def test_a_parameter_that_is_written_is_returned(returns):
    np.testing.assert_array_equal(changing(returns), X + 1)


@pytest.mark.parametrize("by_name", [False, True])
def test_a_parameter_that_is_written_and_not_returned_is_refused(by_name):
    with pytest.raises(LaunchError, match="kernel kernel writes y and does not return it"):
        changing(lambda out, y: out, by_name)


def test_a_mutable_parameter_may_stay_as_it_is():
    @nki.jit
    def kernel(x, y: nt.mutable_tensor):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, value=nl.load(x) + nl.load(y))
        return out

    np.testing.assert_array_equal(kernel(X, X), 2 * X)


def test_a_memory_is_an_object_not_its_name():
    @nki.jit
    def kernel():
        return nl.ndarray((3, 4), dtype=nl.float32, buffer="shared_hbm")

    with pytest.raises(MemorySpaceError, match="'shared_hbm' is not a memory"):
        kernel()


@pytest.mark.parametrize("function", [nl.sum, nl.max, nl.mean, nl.softmax, nl.var])
@pytest.mark.parametrize("axis", ["1", 1.0, ["1"]], ids=["text", "float", "list of text"])
def test_an_axis_is_an_int(function, axis):
    @nki.jit
    def kernel(x):
        return nl.copy(function(nl.load(x), axis))

    with pytest.raises(KernelError, match="axis"):
        kernel(X)
