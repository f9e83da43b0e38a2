"""Arrays, strings, lists and tuples as operands: an error with a caret, not Python's own."""

import operator

import numpy as np
import pytest

from neuroncore.errors import KernelError
from nki_beta1 import nki, nl

X = np.ones((8, 8), np.float32)

VALUES = {
    "a tile": lambda x: nl.load(x),
    "a tensor": lambda x: x,
    "an index": lambda x: nl.arange(8)[None, :],
    "a mask": lambda x: nl.arange(8)[None, :] < 4,
    "a moved index": lambda x: nl.load(x, dtype=nl.int32)[0:1, 0:1] + nl.arange(8)[None, :],
    "an access": lambda x: nl.load(x)[nl.arange(8)[:, None], nl.arange(9)[None, :]],
}
SEQUENCES = {"array": X, "str": "a", "list": [1], "tuple": (1,)}
OPERATORS = ["add", "sub", "mul", "truediv", "floordiv", "pow", "matmul", "and_", "or_", "xor",
             "lshift", "rshift", "lt", "ge"]  # fmt: skip


def error_of(expression):
    @nki.jit
    def kernel(x):
        expression(x)
        return x

    with pytest.raises(KernelError) as caught:
        kernel(X)
    return caught.value


def evaluated(name, left, right):
    return getattr(operator, name)(left, right)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("sequence", SEQUENCES.values(), ids=SEQUENCES)
@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_sequence_is_no_operand(name, sequence, value, side):
    if side == "left":
        error = error_of(lambda x: evaluated(name, sequence, value(x)))
    else:
        error = error_of(lambda x: evaluated(name, value(x), sequence))

    assert "^^^" in str(error)


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        (
            lambda x: X + nl.load(x),
            "a NumPy array + a value that is not an array",
        ),
        (lambda x: "a" + nl.load(x), "a str + a tile is not an operation"),
        (lambda x: [1] + (nl.arange(8) < 4), "a list + a mask is not an operation"),
        (lambda x: nl.load(x) == X, "a tile == a ndarray is not an operation"),
        (lambda x: nl.load(x) != [1], "a tile != a list is not an operation"),
    ],
)
def test_the_error_says_what_met_what(expression, says):
    error = error_of(expression)

    assert says in str(error) and "^^^" in str(error)


def test_an_array_beside_a_tile_is_to_be_an_argument():
    assert "arrays become tensors as arguments" in str(error_of(lambda x: X + nl.load(x)))


@pytest.mark.parametrize("key", [X, np.array([1, 2]), [1], "a", 1.5], ids=repr)
@pytest.mark.parametrize(
    "value", [*VALUES.values(), lambda x: nl.mgrid[0:8, 0:4]], ids=[*VALUES, "an mgrid"]
)
def test_what_is_no_subscript_is_rejected_with_a_caret(value, key):
    assert "^^^" in str(error_of(lambda x: value(x)[key]))
