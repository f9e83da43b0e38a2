"""Number formats by version."""

from __future__ import annotations

import numpy as np
import pytest

from nki_beta2 import BACKEND, language

# NKI API documents: the version in which each dtype appears.
SINCE = {
    "0.2": "bool_ int8 int16 int32 uint8 uint16 uint32 float16 bfloat16 float32 tfloat32 "
    "float8_e4m3 float8_e5m2 float8_e4m3fn float8_e5m2_x4 float8_e4m3fn_x4 float4_e2m1fn_x4",
    "0.5": "float8_e8m0fnu",
}
ALL = [(name, since) for since, names in SINCE.items() for name in names.split()]


@pytest.mark.parametrize(("name", "since"), ALL)
def test_a_dtype_is_there_from_its_version_on(name, since):
    having = [v for v in BACKEND.versions if hasattr(language(v)[1], name)]

    assert having == [v for v in BACKEND.versions if v >= since]


def test_there_are_no_other_dtypes(now):
    kind = type(now.nl.float32)

    named = {n for n, v in vars(now.nl).items() if isinstance(v, kind)}

    assert named == {name for name, _ in ALL}


def test_dtypes_are_the_same_objects_in_every_version(every, now):
    assert every.nl.float32 is now.nl.float32


@pytest.mark.parametrize("spelling", ["float32", np.float32, np.dtype("float32")])
def test_a_dtype_may_be_spelt_in_other_ways(every, spelling):
    t = every.inside(lambda: every.nl.ndarray((4, 8), spelling))

    assert t.dtype is every.nl.float32


def test_nki_dtype_lists_them_too(now):
    modules = BACKEND.modules(now.nki.jit(lambda: None).choice)

    assert modules["nki.dtype"].bfloat16 is now.nl.bfloat16
