"""What cannot be traced is rejected at the user's line, with NumPy's class of error."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from neuroncore.errors import KernelError
from nkigen_lite import trace
from nkigen_lite.tensors.errors import SpecError

PLAIN = np.ones(4, np.float32)


def branch(x):
    if x.sum() > 0:
        return x
    return -x


def into_plain(x):
    out = np.zeros(4, np.float32)
    out[:] = x
    return out


LETTER: Any = "a"


CASES = {
    "branch": (branch, TypeError, "a condition needs the values"),
    "float": (lambda x: math.sqrt(x[0]), TypeError, "float() needs the values"),
    "index": (lambda x: PLAIN[x.argmax()], TypeError, "needs the values"),
    "in": (lambda x: 1.0 in x, TypeError, "`in` needs the values"),
    "item": (lambda x: x[0].item(), TypeError, "item() needs the values"),
    "plain array": (into_plain, TypeError, "np.zeros_like(x, shape=…, dtype=…)"),
    "asarray": (lambda x: np.asarray(x), TypeError, "np.zeros_like"),
    "select of numbers": (
        lambda x: np.select([x, x], [x, x]), TypeError, "should be boolean ndarray",
    ),
    "outer of numbers": (
        lambda x: np.linalg.outer(x, 2.5), ValueError, "must be one-dimensional",
    ),
    "into a number": (lambda x: np.exp(x[0], x[1]), TypeError, "must be of ArrayType"),
    "filled with an array": (lambda x: x.copy().fill(PLAIN), ValueError, "with a sequence"),
    "swallowed by NumPy": (
        lambda x: x * np.array_equal([x[0], 1], [x[0], 1]), TypeError, "np.zeros_like",
    ),
    "traced slice": (lambda x: x[: x.argmax()], TypeError, "an index that is only computed"),
    "mask": (lambda x: x[x > 0], TypeError, "np.where(mask, x, 0)"),
    "fancy": (lambda x: x[[x.argmax(), 1]], TypeError, "only computed when the kernel runs"),
    "function": (lambda x: np.linalg.svd(x), TypeError, "np.linalg.svd is not translated"),
    "nearest": (lambda x: np.nancumsum(x), TypeError, "the nearest that is: np.cumsum"),
    "method with a reason": (lambda x: x.choose([x, x]), TypeError, "np.take_along_axis, np.where"),
    "by values": (lambda x: np.nonzero(x), TypeError, "the shape of its result depends on values"),
    "where alone": (lambda x: np.where(x), TypeError, "np.where(condition, x, y)"),
    "average keyword": (lambda x: np.average(x, returned=True), TypeError, "returned= is not"),
    "ufunc": (lambda x: np.nextafter(x, x), TypeError, "np.nextafter is not translated"),
    "nearest ufunc": (lambda x: np.spacing(x), TypeError, "np.spacing is not translated"),
    "reduce": (lambda x: np.divide.reduce(x), TypeError, "expected: np.add.reduce"),
    "accumulate": (lambda x: np.subtract.accumulate(x), TypeError, "np.subtract.accumulate is not"),
    "method": (lambda x: x.nonzero(), TypeError, "ndarray.nonzero is not translated"),
    "ddof and correction": (
        lambda x: x.var(ddof=1, correction=1), ValueError, "can't be provided simultaneously",
    ),
    "diagonal of text": (lambda x: np.tril(x, k=LETTER), TypeError, "np.tril"),
    "filled with many": (lambda x: x.copy().fill([1.5, 2.0]), TypeError, "with a sequence"),
    "ddof of text": (lambda x: x.var(ddof="1"), TypeError, "ddof"),
    "ddof of many": (lambda x: x.std(ddof=np.array([1, 0])), ValueError, "ddof is one number"),
    "element of another format": (
        lambda x: x.astype(np.int8).__setitem__(1, np.int16(300)), OverflowError, "assignment",
    ),
    "NaN into integers": (
        lambda x: x.astype(np.int8).fill(np.float32(np.nan)), ValueError, "float NaN to integer",
    ),
    "infinite start of integers": (
        lambda x: np.prod(x.astype(np.int8), initial=np.inf), OverflowError, "infinity",
    ),
    "pad mode": (lambda x: np.pad(x, 1, "mean"), TypeError, "mode='mean' is not translated"),
    "pad keyword": (lambda x: np.pad(x, 1, end_values=3), TypeError, "end_values= is not"),
    "take beyond": (lambda x: np.take(x, [4]), IndexError, "out of bounds for axis 0 with size 4"),
    "einsum": (lambda x: np.einsum("ij->j", x), ValueError, "'ij' does not name 1 axes"),
    "norm": (lambda x: np.linalg.norm(x.reshape(2, 2), 2), TypeError, "ord=2 of matrices"),
    "keyword": (lambda x: np.sum(x, initial=x[0]), TypeError, "initial= is a number known here"),
    "out=": (lambda x: np.diagonal(x[None]).dot(x, out=x), TypeError, "out= is not translated"),
    "ufunc where=": (lambda x: np.exp(x, where=PLAIN > 0), TypeError, "where= without out="),
    "ufunc dtype=": (lambda x: np.exp2(x, dtype="f4"), TypeError, "dtype= is not translated"),
    "ufunc traced where=": (lambda x: np.add(x, 1, where=x > 0), TypeError, "where= without out="),
    "order=": (lambda x: np.einsum("i", x, order="F"), TypeError, "order= is not translated"),
    "casting=": (lambda x: np.add(x, x, casting="no"), TypeError, "casting= is not translated"),
    "object": (lambda x: x + np.array([None]), TypeError, "dtype object takes no part"),
    "complex": (lambda x: x * 1j, TypeError, "complex"),
    "text": (lambda x: x + "a", TypeError, "takes no part in a kernel"),
    "axis": (lambda x: x.sum(axis=1), np.exceptions.AxisError, "axis 1 is out of bounds"),
    "axes twice": (lambda x: x.sum(axis=(0, 0)), ValueError, "duplicate value in 'axis'"),
    "float axis": (lambda x: x.sum(axis=0.5), TypeError, "0.5 is not an axis"),
    "broadcast": (lambda x: x + np.ones(3), ValueError, "could not be broadcast together"),
    "matmul": (lambda x: x @ np.ones(3), ValueError, "the contracted axes differ"),
    "reshape": (lambda x: x.reshape(3, -1), ValueError, "cannot reshape array of size 4"),
    "concatenate": (
        lambda x: np.concatenate([x, np.ones((1, 4))]), ValueError, "must match exactly",
    ),
    "bounds": (lambda x: x[4], IndexError, "index 4 is out of bounds for axis 0 with size 4"),
    "too many": (lambda x: x[0, 0], IndexError, "too many indices for array"),
    "float index": (lambda x: x[0.5], IndexError, "only integers, slices"),
    "empty max": (lambda x: x[:0].max(), ValueError, "zero-size array to reduction"),
    "int overflow": (lambda x: x.astype(np.int8) + 300, OverflowError, "out of bounds for int8"),
    "constant": (lambda x: x.astype(int) // np.int64(2**40), OverflowError, "does not fit"),
    "bool minus": (lambda x: (x > 0) - (x < 0), TypeError, "boolean subtract"),
    "in place": (lambda x: x.astype(int).__iadd__(0.5), TypeError, "do not go into int64"),
    "negative power": (lambda x: x.astype(int) ** -1, ValueError, "negative integer powers"),
    "uint32 beside int32": (
        lambda x: x.astype(np.uint32) // x.astype(np.int32), TypeError, "32 bits",
    ),
    "read-only": (
        lambda x: np.broadcast_to(x, (2, 4)).fill(0), ValueError, "destination is read-only",
    ),
    "text of a number": (lambda x: f"{x[0]:.2f}", TypeError, "the text '.2f' of a number needs"),
    "text of an array": (lambda x: f"{x:.2f}", TypeError, "unsupported format string passed"),
    "del": (lambda x: x.__delitem__(0), ValueError, "cannot delete array elements"),
    "hash": (lambda x: {x: 1}, TypeError, "unhashable"),
    "half a step": (lambda x: np.roll(x, 1.5), TypeError, "is not a shift"),  # type: ignore
    "half an axis": (lambda x: np.roll(x, 1, axis=1.5), TypeError, "is not an axis"),  # type: ignore
    "nothing": (lambda x: None, KernelError, "the function returns no arrays"),
    "dict": (lambda x: {"y": x}, KernelError, "the function returns no arrays"),
}  # fmt: skip


@pytest.mark.parametrize(("function", "error", "said"), CASES.values(), ids=CASES)
def test_a_rejection_names_the_line_and_the_reason(function, error, said):
    with pytest.raises(error) as rejected:
        trace(function, "f32[4]")

    assert said in str(rejected.value)
    if not said.startswith("unhashable"):
        assert isinstance(rejected.value, KernelError)
        assert f"test_errors.py:{function.__code__.co_firstlineno}"[:16] in str(rejected.value)


MISTAKES = {
    "broadcast": (lambda x: x + np.ones(3), ValueError, "equal lengths from the last axis on"),
    "axis": (lambda x: x.sum(axis=1), np.exceptions.AxisError, "an axis from -1 to 0"),
    "bounds": (lambda x: x[4], IndexError, "an index from -4 to 3"),
    "too many": (lambda x: x[0, 0], IndexError, "1 indices at most"),
    "float index": (lambda x: x[0.5], IndexError, "such an index"),
    "traced slice": (lambda x: x[: x.argmax()], TypeError, "integers, slices"),
    "stack": (lambda x: np.stack([x, x[1:]]), ValueError, "one shape"),
    "concatenate": (lambda x: np.concatenate([x, x[None]]), ValueError, "equal lengths of all"),
    "split": (lambda x: np.split(x, 3), ValueError, "a number that divides 4"),
    "reshape": (lambda x: x.reshape(3, -1), ValueError, "lengths whose product is 4"),
    "two unknown": (lambda x: x.reshape(-1, -1), ValueError, "one -1 at most"),
    "broadcast_to": (lambda x: np.broadcast_to(x, (4, 2)), ValueError, "axes of one element"),
    "attribute": (lambda x: x.foo, AttributeError, "an attribute of np.ndarray"),
}


@pytest.mark.parametrize(("function", "error", "expected"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_says_what_was_expected_what_came_and_what_to_do(function, error, expected):
    with pytest.raises(error) as rejected:
        trace(function, "f32[4]")

    assert expected in rejected.value.expected
    assert rejected.value.got
    assert rejected.value.hint
    assert "test_errors.py" in str(rejected.value)


def test_a_name_that_only_looks_alike_is_not_proposed():
    with pytest.raises(TypeError) as rejected:
        trace(lambda x: np.sort_complex(x), "f32[4]")
    assert "np.sqrt" not in str(rejected.value)


def returns_text(x):
    return x, "a"


def returns_pairs(x):
    return x, (x, x)


@pytest.mark.parametrize(
    ("function", "said"),
    [(returns_text, "takes no part in a kernel"), (returns_pairs, "one flat tuple of arrays")],
)
def test_a_result_that_is_none_is_rejected_at_the_function(function, said):
    with pytest.raises(KernelError) as rejected:
        trace(function, "f32[4]")

    line = function.__code__.co_firstlineno
    assert said in str(rejected.value)
    assert f"test_errors.py:{line}:" in str(rejected.value).splitlines()[0]


def test_a_list_of_numbers_is_an_array_among_the_results():
    _, numbers = trace(lambda x: (x, [1, 2]), "f32[4]").run(PLAIN)

    assert numbers.tolist() == [1, 2]


def test_a_rejection_reads_like_this():
    def gate(x):
        if x[0] > 0:
            return x
        return -x

    with pytest.raises(TypeError) as rejected:
        trace(gate, "bf16[4]")

    place, *text = str(rejected.value).split("\n")
    assert place.endswith("a condition needs the values of an array that is only computed when "
                          "the kernel runs")  # fmt: skip
    assert text == [
        "    if x[0] > 0:",
        "       ^^^^^^^^",
        "    got:      bool_[()]",
        "    branch on shapes, or choose with np.where, np.minimum, np.maximum",
    ]


@pytest.mark.parametrize(
    ("specs", "said"),
    [
        ((), "missing a required argument: 'x'"),
        (("f32[2]", "f32[2]"), "too many positional arguments"),
        (("f64x[2]",), "'f64x[2]'"),
        ((object(),), "is neither an array nor a spec"),
    ],
)
def test_specs_that_contradict_the_function_are_rejected(specs, said):
    with pytest.raises(SpecError) as rejected:
        trace(lambda x: x, *specs)

    assert said in str(rejected.value)


BYTES = {
    "prod": lambda x: np.prod(x, 0, dtype="f2"),
    "prod into": lambda x: np.prod(x, 0, out=np.zeros_like(x, shape=(3,), dtype="f2")),
    "cumprod": lambda x: np.cumprod(x, 0, dtype="f2"),
    "cumprod into": lambda x: np.cumprod(x, 0, out=np.zeros_like(x, dtype="f2")),
    "cumulative_prod": lambda x: np.cumulative_prod(x, axis=0, dtype="f2"),
    "reduce": lambda x: np.multiply.reduce(x, 0, dtype="f2"),
    "accumulate": lambda x: np.multiply.accumulate(x, 0, dtype="f2"),
}


@pytest.mark.parametrize("function", BYTES.values(), ids=BYTES)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_products_of_integers_that_numpy_overflows_in_float16_are_rejected(function, dtype):
    with pytest.raises(TypeError, match=r"astype\(np.float16\)") as rejected:
        trace(function, f"{dtype}[4, 3]")
    assert isinstance(rejected.value, KernelError)
    assert rejected.value.place is not None and rejected.value.place.file == __file__


NP: Any = np
"""Without the types that say that these calls are wrong."""

MISCALLED = {
    "a keyword": lambda x: NP.sum(x, foo=1),
    "a keyword of many arrays": lambda x: NP.concatenate([x, x], foo=1),
    "a keyword of clip": lambda x: NP.clip(x, 0, 1, foo=1),
    "a keyword of reduce": lambda x: NP.add.reduce(x, foo=1),
    "a keyword of linalg": lambda x: NP.linalg.norm(x, foo=1),
    "a keyword of a universal function": lambda x: NP.add(x, x, foo=1),
    "a keyword of a method": lambda x: x.sum(foo=1),
    "a keyword of astype": lambda x: x.astype("f4", foo=1),
    "a keyword of conj": lambda x: x.conj(foo=1),
    "too many": lambda x: NP.stack([x], 0, None, 3, 4),
    "too many of a method": lambda x: x.copy(1, 2, 3),
    "too few": lambda x: NP.broadcast_to(x),
    "twice": lambda x: NP.sum(x, a=x),
}


@pytest.mark.parametrize("function", MISCALLED.values(), ids=MISCALLED)
def test_calls_that_fit_no_signature_are_numpys_error_at_the_users_line(function):
    with pytest.raises(TypeError) as numpys:
        function(PLAIN)
    with pytest.raises(TypeError) as ours:
        trace(function, "f32[4]")
    assert numpys.type in (TypeError, *TypeError.__subclasses__())
    assert isinstance(ours.value, KernelError)
    assert ours.value.place is not None and ours.value.place.file == __file__
    assert ours.value.place.line == function.__code__.co_firstlineno


def test_a_call_of_the_users_own_is_left_as_it_is():
    def same(x):
        return x

    own: Any = same
    with pytest.raises(TypeError, match=r"same\(\) got an unexpected") as raised:
        trace(lambda x: own(x, foo=1), "f32[4]")
    assert type(raised.value) is TypeError
