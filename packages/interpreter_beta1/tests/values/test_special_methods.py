"""Python's special methods on every value of the language: a meaning of NKI, or a caret.

What Python answers for any object (`mask == 3` is False, `reversed(tile)` gives rows) is none.
"""

import copy
import math
import operator
import pickle

import numpy as np
import pytest

from neuroncore.errors import KernelError
from nki_beta1 import nki, nl

X = np.arange(64, dtype=np.float32).reshape(8, 8)


def number():
    return nl.full((1, 1), 3, dtype=nl.int32)[0, 0]


VALUES = {
    "tile": lambda x: nl.load(x),
    "one element": lambda x: nl.load(x)[0:1, 0:1],
    "waiting": lambda x: nl.exp(nl.load(x)),
    "tensor in HBM": lambda x: x,
    "access": lambda x: nl.load(x)[nl.arange(8)[:, None], (nl.arange(8)[None, :] * 5) % 8],
    "gathered rows": lambda x: x[nl.full((8, 1), 3, dtype=nl.int32), nl.arange(8)[None, :]],
    "moved view": lambda x: nl.load(x)[:, number()],
    "index": lambda x: nl.arange(8)[:, None],
    "moved index": lambda x: number() + nl.arange(4)[None, :],
    "comparison": lambda x: nl.arange(8)[:, None] < 4,
    "mask": lambda x: (nl.arange(8)[:, None] < 4) & (nl.arange(8)[None, :] < 4),
    "blocks": lambda x: nl.zeros((2, nl.par_dim(8), 8), dtype=nl.float32),
    "mgrid": lambda x: nl.mgrid[0:8, 0:8],
}
ON_CHIP = {"tile", "one element", "waiting", "access", "moved view"}
IN_HBM = {"tensor in HBM", "gathered rows"}
TENSORS = ON_CHIP | IN_HBM | {"blocks"}


def deleting(v):
    del v[0]


def assigning(v):
    v[0] = None


def entering(v):
    with v:
        pass


def matching(v):
    match v:
        case 1:
            return True
    return False


OTHERS = {
    "an array": X, "a list": [1], "a tuple": (1, 2), "a str": "a", "a dict": {}, "a set": {1},
    "a dtype": nl.float32, "an object": object(),
}  # fmt: skip

USES = {
    **{f"v == {name}": (lambda v, other=other: v == other, ()) for name, other in OTHERS.items()},
    **{f"v != {name}": (lambda v, other=other: v != other, ()) for name, other in OTHERS.items()},
    **{f"{name} == v": (lambda v, other=other: other == v, ()) for name, other in OTHERS.items()},
    "v == 1": (lambda v: v == 1, ON_CHIP | {"index"}),
    "1 != v": (lambda v: v != 1, ON_CHIP | {"index"}),
    "v == 1.5": (lambda v: v == 1.5, ON_CHIP),
    "np.int32 == v": (lambda v: np.int32(2) == v, ON_CHIP | {"index"}),
    "v == v": (lambda v: v == v, ON_CHIP | {"index"}),
    "v == a mask": (lambda v: v == (nl.arange(8)[:, None] < 3), ()),
    "a mask != v": (lambda v: (nl.arange(8)[:, None] < 3) != v, ()),
    "v in a list": (lambda v: v in [1, 2], ()),
    "1 in v": (lambda v: 1 in v, ()),
    "list.index": (lambda v: [1, v].index(v), ()),
    "match": (matching, ()),
    "with": (entering, ()),
    "bool": (bool, IN_HBM),
    "not": (lambda v: not v, IN_HBM),
    "if": (lambda v: 1 if v else 0, IN_HBM),
    "hash": (hash, TENSORS),
    "key": (lambda v: {v: 1}, TENSORS),
    "in a set": (lambda v: v in {1}, TENSORS),
    "len": (len, TENSORS | {"mgrid"}),
    "list": (list, {"mgrid"}),
    "*v": (lambda v: [*v], {"mgrid"}),
    "for": (lambda v: [0 for _ in v], {"mgrid"}),
    "next": (next, ()),
    "reversed": (lambda v: list(reversed(v)), {"mgrid"}),
    "sum": (sum, {"mgrid"}),
    "sum of two": (lambda v: sum([v, v]), ON_CHIP | {"index"}),
    "sorted": (lambda v: sorted([v, 1]), ()),
    "max": (lambda v: max(v, 0), ()),
    "min": (lambda v: min(0, v), ()),
    "max(v)": (max, ()),
    "any": (any, ()),
    "all": (lambda v: all([v]), IN_HBM),
    "'%s'": (lambda v: f"{v}{v!s}", set(VALUES)),
    "'%d'": (lambda v: operator.mod("%d", v), ()),
    "'%f'": (lambda v: operator.mod("%f", v), ()),
    "'%x'": (lambda v: operator.mod("%x", v), ()),
    "'%c'": (lambda v: operator.mod("%c", v), ()),
    "f'{v:d}'": (lambda v: f"{v:d}", ()),
    "f'{v:>10}'": (lambda v: f"{v:>10}", ()),
    "format .2f": (lambda v: format(v, ".2f"), ()),
    "int": (int, ()),
    "float": (float, ()),
    "complex": (complex, ()),
    "np.float32": (np.float32, ()),
    "np.int32": (np.int32, ()),
    "np.zeros": (np.zeros, ()),
    "np.eye": (np.eye, ()),
    "index": (operator.index, ()),
    "range": (range, ()),
    "[1, 2][v]": (lambda v: [1, 2][v], ()),
    "[1, 2][:v]": (lambda v: [1, 2][:v], ()),
    "'a' * v": (lambda v: "a" * v, ()),
    "hex": (hex, ()),
    "chr": (chr, ()),
    "round": (round, ()),
    "round to 2": (lambda v: round(v, 2), ()),
    "divmod": (lambda v: divmod(v, 2), ()),
    "divmod by": (lambda v: divmod(7, v), ()),
    "pow with a modulus": (lambda v: pow(v, 2, 3), ()),
    "pow": (lambda v: pow(v, 2), ON_CHIP),
    "abs": (abs, ON_CHIP),
    "+v": (lambda v: +v, ()),
    "-v": (lambda v: -v, ON_CHIP | {"index"}),
    "math.sqrt": (math.sqrt, ()),
    "math.floor": (math.floor, ()),
    "math.ceil": (math.ceil, ()),
    "math.trunc": (math.trunc, ()),
    "math.gcd": (lambda v: math.gcd(v, 2), ()),
    "math.isnan": (math.isnan, ()),
    "del v[0]": (deleting, ()),
    "v[0] = None": (assigning, ()),
    "v()": (lambda v: v(), ()),
    "v @ v": (lambda v: v @ v, ()),
    "2 << v": (lambda v: 2 << v, ()),
    "copy": (copy.copy, ()),
    "deepcopy": (copy.deepcopy, ()),
    "pickle": (pickle.dumps, ()),
}
"""A use of a value, and the values for which it means something."""


def outcome(use, value):
    """None where the use means something, else its error."""

    @nki.jit
    def kernel(x):
        use(VALUES[value](x))
        return x

    try:
        kernel(X)
    except KernelError as error:
        return error
    return None


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("name", USES)
def test_a_use_means_something_or_is_rejected_with_a_caret(name, value):
    use, meant = USES[name]

    error = outcome(use, value)

    assert (error is None) == (value in meant)
    if error is not None:
        assert error.place is not None and error.place.file == __file__ and "^" in str(error)


@pytest.mark.parametrize("value", VALUES)
def test_nothing_is_equal_to_none(value):
    def compared(v):
        assert v != None and v not in (None, None)  # noqa: E711
        assert (v == None) is False  # noqa: E711

    assert outcome(compared, value) is None


@pytest.mark.parametrize(
    ("use", "value", "says", "hint"),
    [
        (lambda v: v == X, "mask", "a mask == a ndarray is not an operation", "arrays become"),
        (lambda v: v != 3, "mask", "a mask != an int is not an operation", None),
        (float, "tile", "a tile as a Python number", "functions of nl compute on them"),
        (
            lambda v: operator.mod("%d", v),
            "comparison",
            "a mask as a Python number",
            "combine masks with &",
        ),
        (lambda v: f"{v:d}", "blocks", "block dimensions in the format 'd'", "name a block first"),
        (round, "index", "round() of an index expression", "it represents many ints"),
        (bool, "moved index", "an index that the device moves has no truth value", "in brackets"),
        (lambda v: list(reversed(v)), "tile", "a tile is not iterable", "only on the device"),
        (copy.deepcopy, "tile", "a Python copy of a tile", None),
    ],
)
def test_the_rejection_says_what_was_used_and_what_to_do(use, value, says, hint):
    error = outcome(use, value)

    assert error is not None and says in error.what
    assert hint is None or hint in str(error.hint)


ATTRIBUTES = ["foo", "shape", "dtype", "buffer", "ndim", "T", "p", "name", "itemsize"]


@pytest.mark.parametrize("name", ATTRIBUTES)
@pytest.mark.parametrize("what", [*VALUES, "range of a loop"])
def test_attributes_are_not_assigned(what, name):
    @nki.jit
    def kernel(x):
        value = nl.affine_range(4) if what not in VALUES else VALUES[what](x)
        setattr(value, name, 1)
        return x

    with pytest.raises(KernelError, match=name) as caught:
        kernel(X)
    assert "^^^" in str(caught.value)
