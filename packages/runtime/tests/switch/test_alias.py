"""One more name for the chosen language."""

from __future__ import annotations

import importlib
import sys

import pytest

from nki_runtime import ShadowError, SwitchError, alias, use


@pytest.mark.parametrize("name", ["other_nki", "some_simulator.deep.nki"])
def test_the_modules_are_the_same_under_both_names(name):
    with use("beta2"), alias(name):
        for part in ("", ".language"):
            known = importlib.import_module(f"nki{part}")
            assert importlib.import_module(f"{name}{part}") is known

    assert not [n for n in sys.modules if n.partition(".")[0] == name.partition(".")[0]]


def test_closing_twice_does_nothing():
    with use("beta2"):
        named = alias("other_nki")
        named.close()
        named.close()

    assert "other_nki" not in sys.modules


def test_a_name_that_is_taken_is_rejected():
    with use("beta2"), pytest.raises(ShadowError, match="there is a module 'json' already"):
        alias("json.nki")


def test_there_is_nothing_to_name_outside_of_use():
    with pytest.raises(SwitchError, match="no language is chosen"):
        alias("other_nki")


@pytest.mark.parametrize("name", ["", "a-b", "a..b"])
def test_a_name_that_no_import_can_spell_is_rejected(name):
    with use("beta2"), pytest.raises(SwitchError, match="no language can be called"):
        alias(name)
