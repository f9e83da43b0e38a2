"""Wrong arguments, operators and names: an error of the kernel with a caret, never Python's own."""

from typing import Any

import numpy as np
import pytest

from neuroncore.errors import KernelError, LaunchError, SignatureError, UnsupportedError
from nki_beta1 import nisa, nki, nl

X = np.ones((8, 16), np.float32)


def stored(tile):
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=tile)
    return out


def outcome(expression: Any) -> Any:
    """What a kernel that evaluates `expression(tile, tensor)` ends with: None, or its error."""

    @nki.jit
    def kernel(x):
        result = expression(nl.load(x), x)
        on_chip = getattr(result, "buffer", None) in (nl.sbuf, nl.psum)
        return stored(result) if on_chip and hasattr(result, "astype") else x

    try:
        kernel(X)
    except KernelError as error:
        return error
    return None


def caret_of(error):
    """The source under the caret."""
    _, line, carets, *_ = str(error).splitlines()
    return line[carets.index("^") : carets.rindex("^") + 1]


MISTAKES = {
    "exp()": (
        lambda t, x: nl.exp(),
        "nl.exp: missing 1 required positional argument: 'x'",
        "nl.exp()",
    ),
    "load(x, None)": (
        lambda t, x: nl.load(x, None),
        "nl.load: takes 1 positional argument but 2 were given",
        "nl.load(x, None)",
    ),
    "ndarray by place": (
        lambda t, x: nl.ndarray((4, 4), nl.float32, nl.sbuf),
        "nl.ndarray: takes 2 positional arguments but 3 were given",
        "nl.ndarray((4, 4), nl.float32, nl.sbuf)",
    ),
    "t.T": (lambda t, x: t.T, "a tile of NKI 0.1 has no attribute 'T'", "t.T"),
    "t.sum": (lambda t, x: t.sum(), "a tile of NKI 0.1 has no attribute 'sum'", "t.sum"),
    "//": (lambda t, x: t // 2, "a tile // an int is not an operation", "t // 2"),
    "@": (lambda t, x: t @ t, "a tile @ a tile is not an operation", "t @ t"),
    "arange / 2": (
        lambda t, x: nl.arange(8) / 2,
        "an index expression / an int is not an operation",
        "nl.arange(8) / 2",
    ),
    "access // 2": (
        lambda t, x: t[nl.arange(8)[:, None], nl.arange(99)[None, :]] // 2,
        "an access to a tile // an int is not an operation",
        "t[nl.arange(8)[:, None], nl.arange(99)[None, :]] // 2",
    ),
    "float(t)": (
        lambda t, x: float(t),
        "a tile as a Python number",
        "float(t)",
    ),
    "range(t)": (
        lambda t, x: range(t),
        "a tile as a Python number",
        "range(t)",
    ),
    "round(t)": (lambda t, x: round(t), "round() of a tile", "round(t)"),
    "nl.exponential": (
        lambda t, x: nl.exponential(t),
        "module 'neuronxcc.nki.language' of NKI 0.1 has no attribute 'exponential'",
        "nl.exponential",
    ),
    "np.sum": (
        lambda t, x: np.sum(t),
        "np.sum of a value that is known only on the device",
        "np.sum(t)",
    ),
    "np.exp": (lambda t, x: np.exp(t), "a NumPy function of a tile", "np.exp(t)"),
    "np.asarray": (
        lambda t, x: np.asarray(t),
        "a NumPy array of a value that is known only on the device",
        "np.asarray(t)",
    ),
    "add(t, None)": (lambda t, x: nl.add(t, None), "nl.add: cannot take None", "None"),
    "floor(None)": (lambda t, x: nl.floor(None), "nl.floor: x cannot be None", "None"),
    "sum by name": (
        lambda t, x: nl.sum(t, axis="free"),
        "nl.sum: axis cannot be a str",
        '"free"',
    ),
    "kernel argument": (
        lambda t, x: inner(t, colour=3),
        "kernel inner: got an unexpected keyword argument 'colour'",
        "inner(t, colour=3)",
    ),
}


@nki.jit
def inner(x):
    return x


def deleting(t, x):
    del t[0]


ROWS, COLUMNS = nl.arange(4)[:, None], nl.arange(16)[None, :]
BOUNDS = "the bounds of a slice are not compile-time ints"

MISTAKES |= {
    "reshape(8, 16)": (
        lambda t, x: t.reshape(8, 16),
        "t.reshape: takes 1 positional argument but 2 were given",
        "t.reshape(8, 16)",
    ),
    "astype()": (
        lambda t, x: t.astype(),
        "t.astype: missing 1 required positional argument: 'dtype'",
        "t.astype()",
    ),
    "broadcast_to(5)": (
        lambda t, x: t.broadcast_to(5),
        "t.broadcast_to: shape cannot be an int",
        "5",
    ),
    "expand_dims by name": (
        lambda t, x: t.expand_dims("a"),
        "t.expand_dims: axis cannot be a str",
        '"a"',
    ),
    "del": (deleting, "elements of a tile cannot be deleted", "t[0]"),
    "ds of a tile": (lambda t, x: nl.load(x[ROWS, nl.ds(t[0, 0], 4)]), BOUNDS,
                     "x[ROWS, nl.ds(t[0, 0], 4)]"),
    "slice of a tile": (lambda t, x: nl.load(x[t[0, 0] : 4, COLUMNS]), BOUNDS,
                        "x[t[0, 0] : 4, COLUMNS]"),
    "slice to a tile": (lambda t, x: t[ROWS, : t[0, 0]], BOUNDS, "t[ROWS, : t[0, 0]]"),
    "slice of an index": (lambda t, x: t[ROWS, COLUMNS:4], BOUNDS, "t[ROWS, COLUMNS:4]"),
    "step 0": (lambda t, x: t[ROWS, ::0], "a slice with step 0", "t[ROWS, ::0]"),
}  # fmt: skip


@pytest.mark.parametrize(("expression", "what", "at"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_named_under_a_caret(expression, what, at):
    error = outcome(expression)

    assert str(error).splitlines()[0].endswith(f": {what}")
    assert caret_of(error) == at


def test_a_call_that_does_not_fit_shows_the_signature():
    error = outcome(lambda t, x: nl.exp(t, nl.bfloat16))

    assert isinstance(error, SignatureError)
    assert str(error).splitlines()[-3:] == [
        "    expected: nl.exp(x, *, dtype=None, mask=None)",
        "    what stands after * is given by name",
        "    [NKI 0.1: signature of nl.exp]",
    ]


@pytest.mark.parametrize(
    ("expression", "hint"),
    [
        (lambda t, x: t.max(), "write nl.max(t, …)"),
        (lambda t, x: t.T, "write nl.transpose(t)"),
        (lambda t, x: nl.exponential(t), "did you mean exp?"),
        (lambda t, x: nl.summ(t, 1), "did you mean sum?"),
        (lambda t, x: t.select(0, 1), ".select came with NKI 0.5"),
        (lambda t, x: t.slice(0, 1), ".slice came with NKI 0.5"),
        (lambda t, x: t.rearrange("a b -> b a"), ".rearrange came with NKI 0.5"),
        (lambda t, x: t.is_contiguous, ".is_contiguous came with NKI 0.5"),
        (lambda t, x: t.ap([[16, 8]]), ".ap came with NKI 0.2"),
        (lambda t, x: t.permute((1, 0)), ".permute came with NKI 0.5"),
        (lambda t, x: t.settl(), None),
        (lambda t, x: t @ t, "use nl.matmul(x, y), or nisa.nc_matmul(stationary, moving)"),
    ],
)
def test_the_error_says_what_to_write(expression, hint):
    assert outcome(expression).hint == hint


def test_a_signature_shows_what_is_given_by_name():
    error = outcome(lambda t, x: nisa.dma_copy(t, x))

    assert error.expected.startswith("dma_copy(*, dst, src, ")


def test_a_decorator_names_the_parameter_that_it_does_not_have():
    with pytest.raises(LaunchError, match=r"nki\.benchmark has no parameter 'func'") as caught:
        nki.benchmark(func=inner)

    assert caught.value.expected == "nki.benchmark(kernel, …)"
    with pytest.raises(LaunchError, match=r"nki\.profile has no parameter 'kernel'"):
        nki.profile(kernel=inner)


def test_a_launch_that_does_not_fit_is_explained_at_the_call():
    with pytest.raises(LaunchError) as caught:
        inner(zz=3)

    assert caret_of(caught.value) == "inner(zz=3)"
    assert caught.value.expected == "inner(x)"


def test_a_name_that_is_missing_is_still_an_attribute_error():
    with pytest.raises(AttributeError):
        nl.nothing_like_it()
    assert not hasattr(nl, "nothing_like_it")
    assert outcome(lambda t, x: getattr(t, "nothing_like_it", t)) is None


def test_numbers_of_numpy_stand_on_the_left_of_a_tile():
    @nki.jit
    def kernel(x):
        return stored(np.float32(3) - nl.load(x))

    np.testing.assert_array_equal(kernel(X), 3 - X)


def test_numpy_may_ask_for_the_shape():
    assert outcome(lambda t, x: nl.ndarray(np.shape(t), dtype=nl.float32)) is None


def test_what_the_kernel_raises_itself_stays_as_it_is():
    @nki.jit
    def kernel(x):
        raise ValueError("nl.exp() takes a 'Tile'")

    with pytest.raises(ValueError, match=r"^nl\.exp\(\) takes a 'Tile'$"):
        kernel(X)


def test_a_rejected_operator_is_unsupported():
    assert isinstance(outcome(lambda t, x: t // 2), UnsupportedError)
