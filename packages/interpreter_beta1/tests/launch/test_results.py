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


def output_like(x):
    return nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)


@nki.jit
def copied(x):
    out = output_like(x)
    nl.store(out, value=nl.load(x))
    return out


def outputs_of(x, loop):
    return [output_like(x) for i in loop]


def of_a_helper(x):
    out = []
    for i in nl.affine_range(2):
        out += [i, output_like(x)]
    return out


def of_a_kernel(x):
    out = []
    for i in nl.affine_range(2):
        out += [i, copied(x)]
    return out


def of_a_helpers_loop(x):
    return of_a_helper(x)


def of_a_list(x):
    return [output_like(x) for i in nl.affine_range(2)]


def of_an_inline_list(x):
    return [nl.ndarray((3, 4), dtype=nl.float32, buffer=nl.shared_hbm) for i in range(2)]


def of_an_inner_list(x):
    return [output_like(x) for _ in (0, 1) for i in nl.sequential_range(2)]


def of_a_generator(x):
    return tuple(output_like(x) for i in range(2))


def of_a_dict(x):
    return {i: output_like(x) for i in nl.affine_range(2)}


def of_a_loop_over_lines(x):
    out = []
    for i in nl.affine_range(
        2,
    ):
        out += [i, output_like(x)]
    return out


def of_a_list_over_lines(x):
    return [
        output_like(x)
        for i in nl.affine_range(
            2,
        )
    ]


IN_A_LOOP = [of_a_helper, of_a_kernel, of_a_helpers_loop, of_a_list, of_an_inline_list,
             of_an_inner_list, of_a_generator, of_a_dict, of_a_loop_over_lines,
             of_a_list_over_lines]  # fmt: skip


@pytest.mark.parametrize("function", IN_A_LOOP)
def test_no_way_leads_to_an_output_in_a_loop(function):
    with pytest.raises(MemorySpaceError, match="made inside the loop over i\n") as caught:
        nki.jit(function)(X)
    assert "^^^" in str(caught.value)


def of_unrolled_lists(x):
    return [output_like(x) for _ in nl.static_range(2)] + [output_like(y) for y in (x, x)]


def of_a_list_given(x):
    return outputs_of(x, nl.static_range(2))


def of_a_list_after_a_loop(x):
    scratch = nl.ndarray((2, 4), dtype=x.dtype, buffer=nl.private_hbm)
    for i in nl.affine_range(2):
        nl.store(scratch[i : i + 1, :], value=nl.load(x[i : i + 1, :]))
    return [output_like(x) for _ in (0, 1)]


def of_a_list_of_lists(x):
    sizes = [n + 1 for n in range(2)]
    return [output_like(x) for _ in sizes]


@pytest.mark.parametrize(
    "function", [of_unrolled_lists, of_a_list_given, of_a_list_after_a_loop, of_a_list_of_lists]
)
def test_other_comprehensions_make_outputs(function):
    assert len(nki.jit(function)(X)) > 1


def test_the_loop_that_calls_the_kernel_is_not_in_it():
    results = [copied(X) for _ in range(2)]
    for i in range(2):
        results += [copied(X + i)]

    np.testing.assert_array_equal(results, [X, X, X, X + 1])


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
def test_a_parameter_that_is_written_and_not_returned_is_rejected(by_name):
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
