"""Functions that documents call unsupported on a device: they give values, and `device` says so."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

from neuroncore.checks import watching

VERSIONS = ("0.3", "0.4", "0.5", "0.6", "0.7")
X = np.arange(1, 33, dtype=np.float32).reshape(4, 8)


def found(lang, function, *arrays):
    """The result of a function of tiles, and what `device` says of it."""
    nl, nisa = lang.nl, lang.nisa

    def kernel(*sources):
        result = function(*(lang.tile(s) for s in sources))
        tile = nl.ndarray(result.shape, dtype=result.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(tile, result)
        return lang.out(tile)

    with watching("device") as report:
        result = lang.run(kernel, *arrays)
    return result, list(report)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("name", "reference", "said"),
    [
        ("mod", np.mod, "fails when it is compiled"),
        ("fmod", np.fmod, "fails when it is compiled"),
        ("divide", np.divide, "is not supported on a device"),
    ],
)
@pytest.mark.parametrize("divisor", [2.0, "tile"])
def test_what_only_simulation_runs_gives_values_and_is_found(
    speak, version, name, reference, said, divisor
):
    lang = speak(version)
    function, is_tile = getattr(lang.nl, name), divisor == "tile"

    def called(x, *y):
        return function(x, *(y or (divisor,)))

    powers = 2.0 ** (X % 3)  # every quotient is exact
    result, (finding,) = found(lang, called, X, *([powers] if is_tile else []))

    wanted = reference(X.astype(np.float64), powers.astype(np.float64) if is_tile else divisor)
    np.testing.assert_array_equal(result, wanted)
    assert (finding.rule, finding.code, finding.severity) == ("device", "function", "error")
    assert finding.instruction == f"nl.{name}"
    assert said in finding.message
    assert (
        finding.source == f"NKI 0.3 release notes, known issues, carried forward to 0.6: nl.{name}"
    )
    assert finding.region.path == __file__
    line = linecache.getline(__file__, finding.region.line)
    assert line.strip() == "return function(x, *(y or (divisor,)))"


@pytest.mark.parametrize("version", ["0.5", "0.6"])
@pytest.mark.parametrize("transpose_x", [False, True])
def test_a_product_without_transpose_x_is_found(speak, version, transpose_x):
    lang = speak(version)
    y = X[:, :2] if transpose_x else np.ones((8, 2), np.float32)

    def product(a, b):
        return lang.nl.matmul(a, b, transpose_x=transpose_x)

    result, findings = found(lang, product, X, y)

    np.testing.assert_array_equal(result, (X.T if transpose_x else X) @ y)
    messages = ["a product without transpose_x is not supported on a device"]
    assert [f.message for f in findings] == messages * (not transpose_x)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["add", "maximum", "bitwise_and", "equal", "power"])
def test_two_shapes_are_a_warning(speak, version, name):
    """The known issues ask for one shape, the 0.4 example of nl.abs_max does not have it."""
    lang = speak(version)
    x = X.astype(np.int32) if name == "bitwise_and" else X

    _, alike = found(lang, getattr(lang.nl, name), x, x)
    _, (unlike,) = found(lang, getattr(lang.nl, name), x, x[:, :1].copy())

    assert alike == []
    assert (unlike.code, unlike.severity) == ("assumption", "warning")
    assert unlike.source is not None
    assert "nl.abs_max broadcasts" in unlike.source


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["softmax", "mean", "var", "tan", "multiply", "reciprocal", "cos"])
def test_functions_made_of_others_are_not_those(speak, version, name):
    lang = speak(version)
    more = {"multiply": (2.0,), "softmax": (-1,), "mean": (1,), "var": (1,)}.get(name, ())

    _, findings = found(lang, lambda x: getattr(lang.nl, name)(x, *more), X / 64)

    assert findings == []


def test_what_is_rejected_is_not_found_too(now):
    with watching("device") as report, pytest.raises(ValueError, match="inside"):
        now.inside(lambda: _rejected(now))
    assert list(report) == []


def _rejected(lang):
    tile = lang.nl.ndarray((4, 8), dtype=lang.nl.float32)
    wrong = lang.nl.ndarray((3, 8), dtype=lang.nl.float32)
    try:
        lang.nl.divide(tile, wrong)
    except Exception as rejected:
        raise ValueError("inside") from rejected
