"""nl.sin, cos, tan, mod and fmod: arguments of any size, signs, numbers beside tiles."""

import numpy as np
import pytest

from nki_beta1 import nl

ulp = 2.0**-23


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_an_argument_of_many_turns_is_reduced_first(name, evaluate, rng):
    x = rng.uniform(-200, 200, (8, 256)).astype(np.float32)

    result = evaluate(getattr(nl, name), x)
    # 32 turns, subtracted in three parts: each rounds once at a size of at most 2π.
    np.testing.assert_allclose(result, getattr(np, name)(x.astype(np.float64)), atol=8 * ulp)


def test_tan_is_the_quotient(evaluate, rng):
    x = rng.uniform(-1.2, 1.2, (8, 64)).astype(np.float32)

    result = evaluate(nl.tan, x)
    # cos(1.2) = 0.36: an error of 4 ulp of sin and cos grows threefold in the quotient.
    np.testing.assert_allclose(result, np.tan(x.astype(np.float64)), rtol=16 * ulp, atol=8 * ulp)


def test_cos_rounds_to_the_dtype_of_its_argument(evaluate):
    assert evaluate(lambda x: nl.cos(x), np.zeros((2, 2), np.float16)).dtype == np.float16


MODULI = [(7.5, 2.0), (-7.5, 2.0), (7.5, -2.0), (-7.5, -2.0), (0.0, 3.0)]


@pytest.mark.parametrize(("name", "meaning"), [("mod", np.mod), ("fmod", np.fmod)])
def test_remainders_follow_the_signs_of_divisor_and_dividend(name, meaning, evaluate):
    x, y = (np.array([[pair[n] for pair in MODULI]], np.float32) for n in (0, 1))

    np.testing.assert_array_equal(evaluate(getattr(nl, name), x, y), meaning(x, y))


@pytest.mark.parametrize(("name", "meaning"), [("mod", np.mod), ("fmod", np.fmod)])
def test_remainders_take_a_number_on_either_side(name, meaning, evaluate, rng):
    x = rng.uniform(1, 9, (4, 16)).astype(np.float32)
    function = getattr(nl, name)

    np.testing.assert_array_equal(evaluate(lambda t: function(t, 3.0), -x), meaning(-x, 3.0))
    np.testing.assert_array_equal(
        evaluate(lambda t: function(-20.0, t), x), meaning(np.float32(-20), x)
    )


def test_remainders_take_their_dtype_by_place(evaluate):
    x = np.full((2, 2), 5, np.float32)

    assert evaluate(lambda t: nl.fmod(t, 3.0, nl.bfloat16), x).dtype.name == "bfloat16"
