"""Input that no kernel is made of: NumPy's class of error, what is wrong, at the user's line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import nkigen_lite
from neuroncore.errors import KernelError
from nkigen_lite.numpy_extras import conv2d, max_pool, topk

UNKNOWN: Any = "last"

CASES: dict[str, tuple[Callable[..., Any], tuple[str, ...], type[Exception], str]] = {
    "float indices": (lambda x, i: x[i], ("f32[8,4]", "f32[3]"), IndexError, "must be of integer"),
    "float places to add at": (
        lambda x, i: np.add.at(x, i, 1.0), ("f32[8]", "f32[3]"), IndexError, "must be of integer"
    ),
    "an index beyond the end": (
        lambda x: x[9], ("f32[5]",), IndexError, "out of bounds for axis 0 with size 5"
    ),
    "one of several beyond the end": (
        lambda x: x[[1, 9]], ("f32[5]",), IndexError, "out of bounds for axis 0 with size 5"
    ),
    "an unknown mode": (
        lambda x, i: np.take(x, i, 0, mode=UNKNOWN), ("f32[5]", "i32[3]"), ValueError,
        "clipmode",
    ),
    "a mask without a bound": (
        lambda x, m: x[m], ("f32[8]", "bool[8]"), TypeError, "depends on its values"
    ),
    "unique without a size": (np.unique, ("f32[8]",), TypeError, "depends on values"),
    "a length that is computed": (
        lambda x, n: x[:n], ("f32[8]", "i32[]"), TypeError, "only computed when the kernel runs"
    ),
    "more than there are": (lambda x: topk(x, 9), ("f32[3,8]",), ValueError, "k=9 of an axis of 8"),
    "a place that the axis has not": (
        lambda x: np.partition(x, 8), ("f32[3,8]",), ValueError, "out of bounds (8)"
    ),
    "sorted rows for searchsorted": (
        np.searchsorted, ("f32[5,2]", "f32[3]"), ValueError, "object too deep"
    ),
    "a window larger than the image": (
        conv2d, ("f32[1,3,2,2]", "f32[4,3,3,3]"), ValueError, "larger than the padded image"
    ),
    "pooling that leaves nothing": (
        lambda x: max_pool(x, 4), ("f32[1,3,2,2]",), ValueError, "larger than the padded image"
    ),
    "a window longer than the axis": (
        lambda x: sliding_window_view(x, 9), ("f32[5]",), ValueError, "cannot be larger"
    ),
    "groups that do not divide": (
        lambda x, w: conv2d(x, w, groups=2), ("f32[1,3,5,5]", "f32[4,3,3,3]"), ValueError,
        "groups=2 does not divide",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_rejected_input_says_what_is_wrong_at_the_users_line(case):
    function, specs, kind, text = case

    with pytest.raises(kind) as rejected:
        nkigen_lite.compile(lambda *arrays: function(*arrays), *specs)

    assert isinstance(rejected.value, KernelError)
    assert text in str(rejected.value)
    assert "test_bad_input.py:" in str(rejected.value)


def aliased(cache: Any, position: Any, new: Any) -> Any:
    before = cache[0] * 1
    cache[position] = new
    return before, cache[0]


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("position", [0, 2, -1])
def test_a_cache_that_is_read_before_and_after_it_is_written(in_place, position):
    arrays = [np.ones((3, 4), np.float32), np.int32(position), np.full(4, 2, np.float32)]
    ours, numpys = arrays[0].copy(), arrays[0].copy()

    kernel = nkigen_lite.compile(aliased, "f32[3,4]", "i32[]", "f32[4]", in_place=in_place)

    for found, expected in zip(
        kernel(ours, *arrays[1:]), aliased(numpys, *arrays[1:]), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(ours, numpys)
