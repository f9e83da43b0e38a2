"""Tensors have views and no arithmetic."""

from __future__ import annotations

import operator

import numpy as np
import pytest

from neuroncore.errors import DTypeError, ShapeError, UnsupportedError

X = np.arange(4 * 6, dtype=np.float32).reshape(4, 6)
BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor"]
BINARY += ["lshift", "rshift", "lt", "le", "gt", "ge"]


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("other", [2, np.float32(2), X, "tensor"], ids=["int", "np", "array", "t"])
def test_operators_between_tensors_and_anything_are_rejected(now, name, other):
    apply = getattr(operator, name)

    def kernel(x):
        return apply(x, x if isinstance(other, str) else other)

    with pytest.raises(UnsupportedError, match=r"on tensors|a NumPy function"):
        now.run(kernel, X)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("other", [2, np.float32(2), X], ids=["int", "np", "array"])
def test_operators_with_the_tensor_on_the_right_are_rejected(now, name, other):
    with pytest.raises(UnsupportedError):
        now.run(lambda x: getattr(operator, name)(other, x), X)


@pytest.mark.parametrize("name", ["neg", "invert"])
def test_unary_operators_are_rejected(now, name):
    with pytest.raises(UnsupportedError, match=r"the operator [-~] on tensors"):
        now.run(lambda x: getattr(operator, name)(x), X)


@pytest.mark.parametrize(
    ("use", "what"),
    [
        (lambda x: [*x], "iteration over a tensor"),
        (len, "len"),
        (float, "the number of a tensor"),
        (lambda x: int(x), "the number of a tensor"),
        (lambda x: range(x), "the number of a tensor"),
        (np.asarray, "the NumPy array of a tensor"),
        (np.exp, "a NumPy function of a tensor"),
        (np.concatenate, "iteration|a NumPy function"),
        (lambda x: 3 in x, "iteration over a tensor"),
    ],
    ids=["iter", "len", "float", "int", "range", "asarray", "exp", "concat", "in"],
)
def test_a_tensor_has_no_values_in_the_kernel(now, use, what):
    with pytest.raises(UnsupportedError, match=what):
        now.run(use, X)


@pytest.mark.parametrize("version", ["0.2", "0.3", "0.6", "0.7"])
def test_a_tensor_is_true_as_what_is_not_none(speak, version):
    assert speak(version).run(lambda x, y: (bool(x), bool(y)), X, None) == (True, False)


def test_the_truth_of_one_element_on_chip_may_mean_its_value(every):
    def kernel():
        return bool(every.nl.zeros((1, 1), every.nl.float32, buffer=every.nl.sbuf))

    with pytest.raises(UnsupportedError, match="the truth value of a tensor"):
        every.run(kernel)


@pytest.mark.parametrize("version", ["0.3", "0.7"])
def test_the_truth_of_tensors_is_an_option(speak, version):
    with pytest.raises(UnsupportedError, match="the truth value of a tensor"):
        speak(version, tensor_truth="reject").run(lambda x: bool(x), X)


def test_elements_are_not_assigned(every):
    def kernel(x):
        x[0:1, 0:6] = 3

    with pytest.raises(UnsupportedError, match=r"(?s)assignment to tensor elements.*nisa\.memset"):
        every.run(kernel, X.copy())


def test_augmented_assignment_is_rejected(every):
    def kernel(x):
        x += 1

    with pytest.raises(UnsupportedError, match=r"the operator \+ on tensors"):
        every.run(kernel, X.copy())


def test_equality_is_identity(now):
    """Structural comparison at compile time, never element by element."""
    assert now.run(lambda x: (x == x, x == 3, x != 3), X) == (True, False, True)


# -- views -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4, 3, 2), (4, 6), [4, 1, 6]], ids=str)
def test_reshape_keeps_the_elements(every, shape):
    result = every.run(lambda x: every.out(every.tile(x).reshape(shape)), X)

    assert np.array_equal(result, X.reshape(shape))


def test_view_sees_the_same_bytes(every):
    result = every.run(lambda x: every.out(every.tile(x).view(every.nl.uint16)), X)

    assert np.array_equal(result, X.view(np.uint16))


def test_broadcast_repeats_a_column(now):
    def kernel(x):
        column = now.tile(x)[:, 2:3].broadcast(1, 5)
        tile = now.nl.ndarray((4, 5), now.nl.float32)
        now.nisa.tensor_copy(tile, column)
        return now.out(tile)

    assert np.array_equal(now.run(kernel, X), np.repeat(X[:, 2:3], 5, axis=1))


def test_dimensions_are_permuted_added_and_dropped(now):
    def kernel(x):
        t = now.tile(x).reshape((4, 3, 2)).permute((0, 2, 1)).expand_dim(1)
        assert t.shape == (4, 1, 2, 3)
        return now.out(t.squeeze_dim(1))

    assert np.array_equal(now.run(kernel, X), X.reshape(4, 3, 2).transpose(0, 2, 1))


def test_get_pattern_says_strides_and_counts(now):
    pattern = now.run(lambda x: now.tile(x)[:, 0:6:2].get_pattern(), X)

    assert pattern == [[6, 4], [2, 3]]


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.reshape((4, 5)),
        lambda t: t.reshape((2, 12)),
        lambda t: t.reshape("ab"),
        lambda t: t.reshape(24),
        lambda t: t[:, 0:6:2].view("uint16"),
        lambda t: t[:, 0:5].view("float8_e5m2").view("float16").view("float32")[:, 0:3].view("x"),
        lambda t: t.permute((1, 0)),
        lambda t: t.permute((0, 0)),
        lambda t: t.broadcast(1, 3),
        lambda t: t[:, 0:1].broadcast(-1, 3),
        lambda t: t[0:1].broadcast(0, 3),
        lambda t: t.expand_dim(0),
        lambda t: t.expand_dim(9),
        lambda t: t.squeeze_dim(1),
        lambda t: t.squeeze_dim(9),
        lambda t: t[0:1, 0:3].squeeze_dim(0),
    ],
)
def test_a_view_moves_no_element_and_no_partition(now, change):
    with pytest.raises((ShapeError, DTypeError)):
        now.run(lambda x: change(now.tile(x)), X)


def test_a_tensor_prints_what_it_is(now):
    nl = now.nl

    text = now.inside(lambda: repr(nl.ndarray((4, 6), nl.bfloat16, nl.psum, name="acc")))

    assert text == "<acc: (4, 6), bfloat16, PSUM>"


def test_an_argument_is_in_hbm(every):
    def kernel(x):
        assert x.buffer == every.nl.hbm == every.nl.private_hbm
        return every.out(every.tile(x))

    every.run(kernel, np.ones((2, 2), np.float32))
