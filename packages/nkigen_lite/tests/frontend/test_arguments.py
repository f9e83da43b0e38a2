"""Arguments that change values or are rejected, and Python's view of arrays: NumPy's answer."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nkigen_lite import trace
from nkigen_lite.tensors.errors import TraceError

numpy: Any = np
"""NumPy, for calls that its stubs know to be wrong."""
ROWS = np.arange(-6, 6, dtype=np.float32).reshape(3, 4)
COUNTS = np.arange(-6, 6, dtype=np.int32).reshape(3, 4)


def copied_to(x, source, **keywords):
    y = x.copy()
    np.copyto(y, source, **keywords)
    return y


PROGRAMS = {
    "copyto float": lambda x, n: copied_to(n, x),
    "copyto float unsafe": lambda x, n: copied_to(n, x, casting="unsafe"),
    "copyto integers": lambda x, n: copied_to(x, n),
    "copyto integers safe": lambda x, n: copied_to(x, n, casting="safe"),
    "copyto number": lambda x, n: copied_to(n, 1.5),
    "concatenate": lambda x, n: numpy.concatenate([x, x], dtype=np.int32),
    "concatenate unsafe": lambda x, n: numpy.concatenate([x, x], dtype=np.int32, casting="unsafe"),
    "concatenate safe": lambda x, n: numpy.concatenate([n, x], casting="safe"),
    "concatenate badly": lambda x, n: numpy.concatenate([n, x], casting="foo"),
    "stack": lambda x, n: numpy.stack([x, n], dtype=np.int32),
    "vstack": lambda x, n: numpy.vstack([x, n], dtype=np.int32, casting="unsafe"),
    "hstack": lambda x, n: numpy.hstack([x, n], dtype=np.int32),
    "astype": lambda x, n: x.astype(np.int32, casting="same_kind"),
    "astype by position": lambda x, n: x.astype(np.int32, "K", "same_kind"),
    "astype all by position": lambda x, n: x.astype(np.int32, "F", "unsafe", True, False),
    "astype unsafe": lambda x, n: x.astype(np.int32, casting="unsafe"),
    "take badly": lambda x, n: numpy.take(x, [1], 1, mode="foo"),
    "take clipped": lambda x, n: x.take([-3, 9], 1, mode="clip"),
    "take around": lambda x, n: numpy.take(x, [-3, 9], 1, mode="wrap"),
    "pad": lambda x, n: numpy.pad(x, 1, mode="edge", constant_values=3),
    "pad constant": lambda x, n: numpy.pad(x, 1, constant_values=3),
    "einsum lost dots": lambda x, n: numpy.einsum("...i,...i->i", x, x),
    "einsum no dots": lambda x, n: numpy.einsum("...i,...i->i", x[0], x[1]),
    "sum over a list": lambda x, n: x.sum(axis=[0]),
    "sum over a truth": lambda x, n: x.sum(axis=True),
    "argmax over a truth": lambda x, n: x.argmax(axis=True),
    "flip of a list": lambda x, n: numpy.flip(x, [0]),
    "rot90 of three": lambda x, n: numpy.rot90(x, 1, (0, 1, 1)),
    "step of nothing": lambda x, n: x[::0],
    "rounded": lambda x, n: round(x),
    "a key": lambda x, n: {x: 1},
    "taken if True": lambda x, n: (x[True], x[False], x[:, True], x[np.True_, 1], x[0, 0][True]),
    "truths beside arrays": lambda x, n: (x[[1, 0], True], x[None, True, 1:, np.array(False)]),
    "truths beside masks": lambda x, n: (x[np.arange(3) > 0, True], x[True, True], x[..., True]),
    "mean of a number": lambda x, n: x.sum().mean(0),
    "variance of a number": lambda x, n: x.sum().var(-1),
    "deviation of a number": lambda x, n: n.sum().std(axis=0),
    "over no axes": lambda x, n: (x.sum().mean(()), x.sum().sum(0), x.sum().max(-1)),
    "text of an array": lambda x, n: f"{x:.2f}",
    "without a row": lambda x, n: x.__delitem__(0),
    "truth over truth": lambda x, n: (x > 0) // True,
    "truth plus truth": lambda x, n: (x > 0) + True,
    "number plus truth": lambda x, n: n + True,
    "clip wide": lambda x, n: numpy.clip(n.astype(np.int8), -300, 300),
    "clip from below": lambda x, n: numpy.clip(n.astype(np.int8), -300, 2),
    "clip unsigned": lambda x, n: numpy.clip(np.abs(n).astype(np.uint8), -1, 3),
    "reciprocal": lambda x, n: numpy.reciprocal(n * n - 5 - 1 - (n == 0)),
    "isinstance": lambda x, n: x * 2 if isinstance(x, numpy.ndarray) else x,
    "isinstance number": lambda x, n: x * 2 if isinstance(x[0, 0], numpy.floating) else x,
    "a number is not an array": lambda x, n: x * 2 if isinstance(x[0, 0], numpy.ndarray) else x,
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_arguments_mean_what_they_mean_to_numpy(program, agree):
    agree(program, ROWS, COUNTS)


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "u1", "u4"])
def test_integers_have_whole_reciprocals(dtype, agree):
    agree(np.reciprocal, np.array([1, 3, 9, 127, 2], dtype))
    if dtype[0] == "i":
        agree(np.reciprocal, np.array([-9, -5, -2, -1, np.iinfo(dtype).min], dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int32])
def test_nan_to_num_changes_what_numpy_counts_as_floats(dtype, agree):
    with np.errstate(invalid="ignore"):
        x = np.array([np.nan, 1, np.inf, -np.inf]).astype(dtype)
    agree(np.nan_to_num, x)
    agree(lambda x: np.nan_to_num(x, nan=7, posinf=3, neginf=-3), x)


INDICES = {
    "list": lambda x: x[[0, 2, 1]],
    "negative": lambda x: x[[-1, 0]],
    "array": lambda x: x[np.array([[0, 1], [1, 1]])],
    "second axis": lambda x: x[:, [0, 2]],
    "last axis": lambda x: x[..., [3, 0]],
    "with a number": lambda x: x[0, [1, 2]],
    "apart": lambda x: x[0, :, [1, 2]],
    "new axis": lambda x: x[None, [1], ::2],
    "two arrays": lambda x: x[[0, 1], [2, 0]],
    "two that broadcast": lambda x: x[[[0], [1]], [2, 0]],
    "two apart": lambda x: x[[0, 1], :, [2, 0]],
    "mask": lambda x: x[np.array([True, False])],
    "mask list": lambda x: x[[True, False]],
    "mask of all": lambda x: x[np.arange(24).reshape(2, 3, 4) % 5 == 0],
    "mask of two": lambda x: x[np.arange(6).reshape(2, 3) % 2 == 0, 1:],
    "mask of nothing": lambda x: x[np.zeros((2, 3, 4), bool)],
    "nothing": lambda x: x[[]],
    "flattened": lambda x: x[:, [0, 2]].reshape(-1),
    "outside": lambda x: x[[0, 2]],
    "mask too long": lambda x: x[np.ones(3, bool)],
    "unlike shapes": lambda x: x[[0, 1], [0, 1, 2]],
    "floats": lambda x: x[np.array([0.0, 1.0])],
    "too many": lambda x: x[[0], 0, 0, 0],
}


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
def test_known_indices_pick_what_numpy_picks(index):
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    try:
        expected = index(x)
    except IndexError:
        with pytest.raises(IndexError):
            trace(index, x)
        return
    found = trace(index, x).run(x)
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


def test_a_table_and_traced_indices_name_the_users_line_and_a_way():
    table = np.ones((4, 2), np.float32)
    for program in (lambda i: np.take(table, i, axis=0), lambda i: table[i]):
        with pytest.raises(TraceError) as rejected:
            trace(program, "i32[3]")
        assert rejected.value.place is not None
        assert rejected.value.place.file == __file__
        assert "take the table as an argument" in str(rejected.value)


def test_a_number_that_an_array_cannot_hold_is_no_source():
    with pytest.raises(OverflowError, match="300"):
        trace(lambda n: copied_to(n, 300), "int8[3]")


def test_python_errors_of_arrays_have_a_place():
    for program in (lambda x: round(x), lambda x: {x: 1}):
        with pytest.raises(TypeError, match=r"numpy\.ndarray") as rejected:
            trace(program, "f32[3]")
        assert __file__ in str(rejected.value)
