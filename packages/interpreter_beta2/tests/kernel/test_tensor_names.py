"""Names of tensors in 0.2, as the `device` check requires them."""

import numpy as np
import pytest

from neuroncore.checks import watching

X = np.ones((4, 4), np.float32)


def found(lang, first, second, turns=1):
    """What is said of a kernel whose two tensors in HBM have these names."""
    nl, nisa = lang.nl, lang.nisa

    def kernel(x):
        for _ in range(turns):
            tile = nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.sbuf, name="tile")
            nisa.dma_copy(dst=tile, src=x)
        staged = nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.shared_hbm, name=first)
        nisa.dma_copy(dst=staged, src=tile)
        out = nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.shared_hbm, name=second)
        nisa.dma_copy(dst=out, src=staged)
        return out

    with watching("device") as report:
        assert np.array_equal(lang.run(kernel, X), X)
    return [(f.code, f.message) for f in report]


def test_names_of_their_own_are_right(speak):
    assert found(speak("0.2"), "staged", "out") == []
    assert found(speak("0.2"), "staged", "") == []  # a result needs none
    assert found(speak("0.2"), "staged", "out", turns=3) == []


def test_one_name_for_two_tensors_is_found(speak):
    for names in (("out", "out"), ("tile", "out")):
        said = f"a second tensor is called {names[0]!r}"
        assert found(speak("0.2"), *names) == [("name", said)]


def test_shared_memory_without_a_name_is_found(speak):
    said = "a tensor in shared HBM that is not a result has no name"
    assert found(speak("0.2"), "", "out") == [("name", said)]


@pytest.mark.parametrize("version", ["0.3", "0.4", "0.5", "0.6"])
def test_later_versions_do_not_ask(speak, version):
    assert found(speak(version), "", "tile") == []


def test_two_results_of_one_name_are_found(speak):
    lang = speak("0.2")
    nl, nisa = lang.nl, lang.nisa

    def kernel(x):
        results = []
        for _ in range(2):
            out = nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.shared_hbm, name="out")
            nisa.dma_copy(dst=out, src=x)
            results.append(out)
        return tuple(results)

    with watching("device") as report:
        lang.run(kernel, X)

    assert [(f.code, f.message) for f in report] == [("name", "a second result is called 'out'")]
