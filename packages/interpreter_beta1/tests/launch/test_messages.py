"""Errors speak of what a kernel of 0.1 has, say what leads, and name the kernel and the place."""

import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import neuroncore
from neuroncore.errors import CapacityError, KernelError, LaunchError, MemorySpaceError
from nki_beta1 import nisa, nki, nl
from nki_beta1.launch.python_errors import PHRASES, translated

X = np.arange(12, dtype=np.float32).reshape(3, 4)
MACHINE = Path(neuroncore.__path__[0])


def stored(tile):
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=tile)
    return out


def error_of(expression: Any, x: Any = X) -> Any:
    @nki.jit
    def kernel(x):
        return stored(expression(nl.load(x), x))

    with pytest.raises(KernelError) as caught:
        kernel(x)
    return caught.value


# -- the words of 0.1 -----------------------------------------------------------------------------


def hints_of_the_machine():
    """Every text of the records and memories that names a copy or `.ap`."""
    for folder in ("instructions", "memory"):
        for file in sorted((MACHINE / folder).glob("*.py")):
            joined = re.sub(r'"\s*\n\s*"', "", file.read_text(encoding="utf-8"))
            for text in re.findall(r'(?:hint=|return |rule=)"([^"]*)"', joined):
                if re.search(r"\.ap\b|nisa\.(?:dma|tensor)_copy", text):
                    yield text


def test_the_machine_has_such_texts():
    assert len(list(hints_of_the_machine())) > 8


@pytest.mark.parametrize("text", sorted(set(hints_of_the_machine())))
def test_no_hint_names_what_0_1_lacks(text):
    assert not re.search(r"\.ap\b|nisa\.(?:dma|tensor)_copy", translated(text) or "")


@pytest.mark.parametrize("phrase", PHRASES)
def test_every_phrase_still_occurs(phrase):
    texts = (f.read_text(encoding="utf-8") for f in MACHINE.rglob("*.py"))

    assert any(phrase in re.sub(r'"\s*\n\s*"', "", text) for text in texts)


def test_a_tensor_in_hbm_is_loaded_before_it_is_used_on_chip():
    assert error_of(lambda t, x: nl.exp(x)).hint == "bring it on chip with nl.load first"


def test_an_index_of_another_kind_is_told_about_tiles():
    error = error_of(lambda t, x: t["first"])

    assert error.hint.startswith("an index that the device computes is a tile: t[idx,")


# -- what leads, and what came --------------------------------------------------------------------


def test_the_wrong_axis_leads():
    error = error_of(lambda t, x: nl.sum(t, axis=[0]), np.ones((128, 64), np.float32))

    assert str(error).splitlines()[0].endswith("axis (0,) is not the trailing free axes")


def test_the_function_that_the_kernel_calls_is_named():
    i, j = nl.arange(3)[:, None], nl.arange(4)[None, :]

    assert error_of(lambda t, x: nl.var(t, 1, mask=i < 2)).what.startswith("nl.var with a mask")
    assert error_of(lambda t, x: nl.store(x[i, j], t, mask=j <= i)).instruction == "nl.store"


def test_an_axis_of_another_kind_is_told_what_it_should_be():
    error = error_of(lambda t, x: nisa.tensor_reduce(np.add, t, axis="1"))

    assert (error.expected, error.got) == ("a compile-time int", "'1'")
    assert error.rule


def test_a_bad_number_of_a_tile_is_not_left_to_a_mask():
    def gathering(t, x):
        return nl.load(x[nl.full((3, 1), 99, dtype=nl.int32), nl.arange(4)[None, :]])

    hint = error_of(gathering).hint

    assert "mask= names positions" in hint and "oob_mode.skip" in hint


@pytest.mark.parametrize(
    "wrong",
    [
        lambda t, x: nl.all_reduce(t, np.add, [0]),
        lambda t, x: nisa.local_gather(
            nl.zeros((128, 64), nl.float32),
            nl.zeros((128, 4), nl.uint16),
            mask=nl.arange(128)[:, None] < 5,
        ),
    ],
    ids=["all_reduce", "local_gather"],
)
def test_no_name_stands_twice(wrong):
    @nki.jit
    def kernel(x):
        return stored(wrong(nl.load(x), x))

    with pytest.raises(KernelError) as caught:
        kernel[2](X)

    head = str(caught.value).splitlines()[0]
    name = caught.value.instruction or ""
    assert head.count(f" {name}") == 1 and head.count(name.rpartition(".")[2]) == 1


def test_an_address_beyond_its_memory_is_no_negative_capacity():
    def beyond(t, x):
        far = nki.compiler.sbuf.alloc(lambda idx, pdim_size, fdim_size: (0, 10**9))
        return nl.ndarray((3, 4), dtype=nl.float32, buffer=far)

    error = error_of(beyond)

    assert isinstance(error, CapacityError)
    assert error.what == "offset 1000000000 is outside SBUF"
    assert str(error.expected).startswith("0 <= offset < ")


def test_a_mask_is_shown_as_what_it_is():
    i, j = nl.arange(3)[:, None], nl.arange(4)[None, :]

    assert repr(i < 2) == "<mask <index 0 + 1*i0 of shape (3, 1)> less 2>"
    assert repr((i < 2) & (j < 3)) == "<mask over index axes (3, 4)>"

    error = error_of(lambda t, x: nisa.affine_select((i < 2) & (j < 3), t, 0.0))
    assert error.got == "<mask over index axes (3, 4)>"


# -- results --------------------------------------------------------------------------------------


@nki.jit
def on_chip(x):
    tile = nl.load(x)
    return {"tiles": [tile]}


@nki.jit
def of_numpy(x):
    return np.ones(3)


@nki.jit
def of_an_index(x):
    return nl.arange(3)


@pytest.mark.parametrize(
    ("kernel", "error", "what", "line"),
    [
        (
            on_chip,
            MemorySpaceError,
            "kernel on_chip returns a tensor in SBUF",
            'return {"tiles": [tile]}',
        ),
        (of_numpy, LaunchError, "kernel of_numpy returns a ndarray", "return np.ones(3)"),
        (
            of_an_index,
            LaunchError,
            "kernel of_an_index returns an index expression",
            "return nl.arange(3)",
        ),
    ],
    ids=lambda given: getattr(given, "__name__", None),
)
def test_a_result_that_is_no_tensor_in_hbm_is_rejected_at_the_return(kernel, error, what, line):
    with pytest.raises(error) as caught:
        kernel(X)

    head, source, carets, *_ = str(caught.value).splitlines()
    assert head.endswith(f": {what}")
    assert source.strip() == line and carets.strip() == "^" * len(line)


def test_of_several_returns_the_kernel_is_shown():
    @nki.jit
    def several(x, early):
        tile = nl.load(x)
        if early:
            return tile
        return tile

    with pytest.raises(MemorySpaceError, match="kernel several returns") as caught:
        several(X, True)

    first = inspect.unwrap(several).__code__.co_firstlineno
    assert str(caught.value.place).endswith(f":{first}:1")


def test_numbers_may_be_returned_beside_tensors():
    @nki.jit
    def kernel(x):
        return stored(nl.load(x)), x.shape[0]

    out, rows = kernel(X)

    np.testing.assert_array_equal(out, X)
    assert rows == 3


# -- load_transpose2d -----------------------------------------------------------------------------


def test_a_transposing_load_takes_a_mask_about_its_access():
    @nki.jit
    def kernel(x):
        i, j = nl.mgrid[0:8, 0:4]
        transposed = nl.load_transpose2d(x[i, j], mask=i < 3)
        rows, columns = nl.mgrid[0:4, 0:3]
        return stored(nl.copy(transposed[rows, columns]))

    np.testing.assert_array_equal(kernel(X), X.T)


def test_a_transposing_load_of_three_dimensions_says_what_to_do():
    def three_dimensions(t, x):
        return nl.load_transpose2d(nl.ndarray((2, 3, 4), dtype=nl.float32, buffer=nl.shared_hbm))

    error = error_of(three_dimensions)

    assert error.what == "src has 3 dimensions"
    assert error.hint == "index the leading dimensions: x[b, i_p, i_f]"


# -- what to do -----------------------------------------------------------------------------------

Y = np.ones((128, 64), np.float32)
HINTS = {
    "half an index": (
        lambda t, x: t[nl.arange(128)[:, None] + 0.5, nl.arange(64)[None, :]],
        "indices are whole numbers: divide with //, or write an int"),
    "a tile times an index": (
        lambda t, x: t[nl.arange(128)[:, None], nl.arange(64)[None, :] * t[0, 0]],
        "one number of a tile moves an index by + only: n[0, 0] + nl.arange(F)[None, :]"),
    "another width": (lambda t, x: t + t[:, 0:32], "cut both to equal extents, such as t[:, 0:n]"),
    "another rank": (lambda t, x: nl.add(t, t.reshape((128, 2, 32))),
                     "give both the same rank: t.reshape(shape), or t.expand_dims(axis)"),
    "past the last row": (lambda t, x: nl.load(x[128, :]),
                          "end the loop before it, or clamp with min(…) where the last tile is "
                          "ragged"),
    "past the last column": (lambda t, x: t[:, 64], "end the loop before it, or clamp with min(…) "
                             "where the last tile is ragged"),
    "unequal K": (lambda t, x: nl.matmul(t, t),
                  "cut both to one K; take nl.transpose(y) of a y of shape (N, K); "
                  "transpose_x=True takes an x of shape (K, M)"),
    "unequal K of a transposed x": (
        lambda t, x: nl.matmul(t, t[0:64, :], transpose_x=True),
        "cut both to one K; take nl.transpose(y) of a y of shape (N, K)"),
}  # fmt: skip


@pytest.mark.parametrize("name", HINTS)
def test_the_error_says_what_to_do(name):
    expression, hint = HINTS[name]

    assert error_of(expression, Y).hint == hint


def test_a_matmul_speaks_of_the_operands_that_it_was_given():
    error = error_of(lambda t, x: nl.matmul(t, t), Y)

    assert error.what == "K is 64 in x and 128 in y"
    assert error.got == "x (128, 64), y (128, 64)"


MAKERS = {
    "ndarray": ((4, 4),),
    "zeros": ((4, 4),),
    "ones": ((4, 4),),
    "full": ((4, 4), 2),
    "zeros_like": (),
    "empty_like": (),
}


@pytest.mark.parametrize("name", MAKERS)
def test_an_output_made_in_a_loop_is_named_as_it_was_called(name):
    def body(t, x):
        for _ in nl.affine_range(2):
            getattr(nl, name)(*(MAKERS[name] or (x,)), dtype=nl.float32, buffer=nl.shared_hbm)

    error = error_of(body)
    assert error.instruction == f"nl.{name}"
    assert error.what == "a tensor in SHARED_HBM is made inside the loop over _"


def deeper(depth, tile):
    return deeper(depth + 1, tile)


def to_a_depth(depth, tile):
    return tile if depth == 0 else to_a_depth(depth - 1, tile) * 2.0


def test_recursion_without_end_is_shown_where_the_kernel_enters_it():
    @nki.jit
    def kernel(x):
        tile = nl.load(x)
        return deeper(0, tile)

    with pytest.raises(LaunchError, match="kernel kernel recurses without end") as caught:
        kernel(X)
    _, line, carets, *_ = str(caught.value).splitlines()
    assert line[carets.index("^") : carets.rindex("^") + 1] == "deeper(0, tile)"


def test_recursion_that_ends_is_pythons_own():
    @nki.jit
    def kernel(x):
        return stored(to_a_depth(3, nl.load(x)))

    np.testing.assert_array_equal(kernel(X), 8 * X)


@pytest.mark.parametrize("result", [5, (1, 2), "text", []], ids=repr)
def test_a_kernel_without_any_tensor_among_its_results_is_rejected(result):
    @nki.jit
    def kernel(x):
        return result

    with pytest.raises(LaunchError, match=r"kernel kernel returns .* and no tensor") as caught:
        kernel(X)
    assert "^" in str(caught.value)
