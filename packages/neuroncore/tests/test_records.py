"""Records: values that type checkers keep from being changed."""

import pickle
from dataclasses import replace

from neuroncore.integers.affine import Affine
from neuroncore.records import record


@record
class Pair:
    first: int
    second: int = 2


def test_equal_fields_are_one_key():
    assert {Pair(1), Pair(1, 2), replace(Pair(3), first=1)} == {Pair(1)}
    assert Pair(1) != Pair(2)


def test_a_record_has_no_other_attributes():
    assert not hasattr(Pair(1), "__dict__")


def test_a_record_is_pickled():
    index = 4 * Affine.variable("i") + 1
    assert pickle.loads(pickle.dumps(index)) == index
