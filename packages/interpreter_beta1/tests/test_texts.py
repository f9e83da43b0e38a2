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
from nki_beta1._wording import PHRASES, spoken

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
    assert not re.search(r"\.ap\b|nisa\.(?:dma|tensor)_copy", spoken(text) or "")


@pytest.mark.parametrize("phrase", PHRASES)
def test_every_phrase_still_occurs(phrase):
    texts = (f.read_text(encoding="utf-8") for f in MACHINE.rglob("*.py"))

    assert any(phrase in re.sub(r'"\s*\n\s*"', "", text) for text in texts)


def test_a_tensor_in_hbm_is_brought_on_chip_by_a_load():
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
    assert error_of(lambda t, x: nl.load(x[i, j], mask=j <= i)).instruction == "nl.load"


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
def test_a_result_that_is_no_tensor_in_hbm_is_refused_at_the_return(kernel, error, what, line):
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
        turned = nl.load_transpose2d(x[i, j], mask=i < 3)
        rows, columns = nl.mgrid[0:4, 0:3]
        return stored(nl.copy(turned[rows, columns]))

    np.testing.assert_array_equal(kernel(X), X.T)


def test_a_transposing_load_of_three_dimensions_says_what_to_do():
    def three_dimensions(t, x):
        return nl.load_transpose2d(nl.ndarray((2, 3, 4), dtype=nl.float32, buffer=nl.shared_hbm))

    error = error_of(three_dimensions)

    assert error.what == "src has 3 dimensions"
    assert error.hint == "index the leading dimensions: x[b, i_p, i_f]"
