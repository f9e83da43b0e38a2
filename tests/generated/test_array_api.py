"""Functions that docs/generator.md lists as supported give NumPy's results."""

from __future__ import annotations

from typing import Any

import array_api
import numpy as np
import pytest

import nkigen_lite

SUPPORTED = {
    f"{category}: {name}": example
    for category, examples in array_api.EXAMPLES.items()
    for name, example in examples.items()
    if not array_api.reason(example)
}


def arguments() -> list[np.ndarray]:
    """Numbers between 0.1 and 1.9, integers from 0 to 3."""
    rng, made = np.random.default_rng(28), []
    for text in array_api.ARGUMENTS.values():
        spec = nkigen_lite.as_spec(text)
        numbers = rng.integers(0, 4, spec.shape) if text[0] in "ib" else (
            rng.uniform(0.1, 1.9, spec.shape)
        )  # fmt: skip
        made.append(np.asarray(numbers > 1 if text[0] == "b" else numbers, spec.storage))
    return made


@pytest.mark.parametrize("name", SUPPORTED)
def test_a_supported_function_gives_numpys_result(name: str):
    function, given = array_api.function_of(SUPPORTED[name]), arguments()
    with np.errstate(all="ignore"):
        expected: Any = function(*(a.copy() for a in given))

    ours = nkigen_lite.trace(function, *array_api.ARGUMENTS.values()).run(*given)

    assert np.shape(ours) == np.shape(expected)
    np.testing.assert_allclose(
        np.asarray(ours, np.float64), np.asarray(expected, np.float64), rtol=2e-6, atol=1e-6
    )


def test_most_of_the_standard_is_supported():
    every = sum(map(len, array_api.EXAMPLES.values()))

    assert len(SUPPORTED) > 0.75 * every


def test_every_method_of_arrays_is_listed():
    public = {name for name in dir(np.ndarray) if not name.startswith("_")}

    assert public - array_api.EXAMPLES["methods of arrays"].keys() <= {
        "itemset", "newbyteorder", "ptp", "tostring"
    }  # fmt: skip
