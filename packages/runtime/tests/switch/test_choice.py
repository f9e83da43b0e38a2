"""Explicit beats enclosing beats environment beats default, for each part of the choice."""

from __future__ import annotations

from typing import Any

import pytest

from neuroncore.errors import KernelError, LaunchError
from nki_runtime import BackendError, ChoiceError, backends, current, use

ENV = {
    "NKI_RUNTIME": "beta1",
    "NKI_RUNTIME_VERSION": "0.1",
    "NEURON_PLATFORM_TARGET_OVERRIDE": "inf2",
    "NKI_PRECISE_FP": "0",
}


def chosen(**explicit):
    with use(**explicit) as switch:
        c = switch.choice
        assert current() == c
        return c.backend, c.nki, c.target, c.options.precise


@pytest.mark.parametrize(
    ("explicit", "environment", "expected"),
    [
        ({}, {}, ("beta2", "0.6", "trn2", True)),
        ({}, ENV, ("beta1", "0.1", "trn1", False)),
        ({"backend": "beta2"}, ENV, ("beta2", "0.6", "trn1", False)),
        ({"nki": "0.3"}, ENV, ("beta2", "0.3", "trn1", False)),
        ({"nki": "0.1"}, {}, ("beta1", "0.1", "trn2", True)),
        ({"target": "gen4"}, ENV, ("beta1", "0.1", "trn3", False)),
        ({"precise": True}, ENV, ("beta1", "0.1", "trn1", True)),
        ({}, {"NKI_RUNTIME_VERSION": "0.1"}, ("beta1", "0.1", "trn2", True)),
        ({}, {"NKI_RUNTIME_VERSION": "0.4"}, ("beta2", "0.4", "trn2", True)),
        ({"backend": "beta1"}, {"NKI_RUNTIME_VERSION": "0.4"}, ("beta1", "0.1", "trn2", True)),
        ({}, {"NKI_SIMULATOR": "1"}, ("beta2", "0.6", "trn2", True)),
        ({}, {"NKI_SIMULATOR": "1", **ENV}, ("beta1", "0.1", "trn1", False)),
        ({}, {"NKI_RUNTIME": ""}, ("beta2", "0.6", "trn2", True)),
        ({}, {"NKI_PRECISE_FP": "1"}, ("beta2", "0.6", "trn2", True)),
    ],
)
def test_explicit_beats_environment_beats_default(explicit, environment, expected, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert chosen(**explicit) == expected


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ({}, ("beta2", "0.3", "trn3", False)),
        ({"backend": "beta2"}, ("beta2", "0.3", "trn3", False)),
        ({"backend": "beta1"}, ("beta1", "0.1", "trn3", False)),
        ({"nki": "0.1"}, ("beta1", "0.1", "trn3", False)),
        ({"target": "trn2"}, ("beta2", "0.3", "trn2", False)),
        ({"precise": True}, ("beta2", "0.3", "trn3", True)),
    ],
)
def test_explicit_beats_enclosing_beats_environment(inner, expected, monkeypatch):
    for name, value in ENV.items():
        monkeypatch.setenv(name, value)

    with use("beta2", nki="0.3", target="trn3"):
        assert chosen(**inner) == expected


@pytest.mark.parametrize(
    ("word", "target"),
    [
        ("trn1", "trn1"),
        ("inf2", "trn1"),
        ("gen2", "trn1"),
        ("trn2", "trn2"),
        ("gen3", "trn2"),
        ("trn3", "trn3"),
        ("gen4", "trn3"),
    ],
)
def test_targets_have_the_names_of_their_generation(word, target, monkeypatch):
    assert chosen(target=word)[2] == target
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", word)
    assert chosen()[2] == target


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("NKI_RUNTIME", "beta9", "no backend is called 'beta9'"),
        ("NKI_RUNTIME_VERSION", "7", "NKI_RUNTIME_VERSION names no version we know"),
        ("NKI_RUNTIME_VERSION", "abc", "NKI_RUNTIME_VERSION names no version we know"),
        ("NEURON_PLATFORM_TARGET_OVERRIDE", "tpu", "OVERRIDE names no generation we know"),
        ("NKI_PRECISE_FP", "maybe", "NKI_PRECISE_FP is neither on nor off"),
        ("NKI_COMPILER_FRONTEND", "old", "NKI_COMPILER_FRONTEND names no frontend"),
    ],
)
def test_a_bad_environment_is_rejected_by_the_variables_name(name, value, message, monkeypatch):
    monkeypatch.setenv(name, value)

    with pytest.raises(ChoiceError, match=message):
        use()


@pytest.mark.parametrize(
    ("value", "frontend"), [("custom", "parser"), ("parser", "parser"), ("tracer", "tracer")]
)
def test_the_frontend_of_the_environment_is_an_option(value, frontend, monkeypatch):
    monkeypatch.setenv("NKI_COMPILER_FRONTEND", value)

    with use() as switch:
        assert switch.choice.options.frontend == frontend
    with use(frontend="version") as switch:
        assert switch.choice.options.frontend == "version"


def test_an_unknown_backend_names_the_known_ones():
    with pytest.raises(ChoiceError) as error:
        use("beta3")

    assert "expected: one of absent, beta1, beta2, hollow, nkigen-lite, neuron" in str(error.value)
    assert "did you mean 'beta" in str(error.value)


def test_a_version_finds_its_language_where_the_default_one_is_not_installed(monkeypatch):
    monkeypatch.setattr("nki_runtime.switch.choice.DEFAULT_BACKEND", "beta7")

    assert chosen(nki="0.1")[0] == "beta1"
    with pytest.raises(ChoiceError, match="no backend is called 'beta7'"):
        use(nki="7.0")


def test_a_version_of_another_language_says_whose_it_is():
    with pytest.raises(ChoiceError) as error:
        use("beta1", nki="0.6")

    assert "backend 'beta1' does not speak NKI 0.6 (requested by use())" in str(error.value)
    assert "backend 'beta2' speaks it" in str(error.value)


def test_a_version_that_is_a_number_is_rejected_with_the_cure():
    number: Any = 0.6
    with pytest.raises(ChoiceError, match=r'versions are strings: nki="0\.6"'):
        use(nki=number)


def test_an_unknown_option_is_rejected():
    with pytest.raises(LaunchError, match="unknown option 'precice'"):
        use(precice=False)


def test_errors_point_at_the_line_that_asked():
    with pytest.raises(KernelError) as error:
        use("beta3")

    assert str(error.value).startswith(f"{__file__}:")
    assert '    use("beta3")\n    ^^^^^^^^^^^^\n' in str(error.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent", "backend 'absent' does not load from no_such_package:BACKEND"),
        ("hollow", "backend 'hollow' from fake_languages:HOLLOW is not a backend"),
    ],
)
def test_a_broken_backend_is_named_and_harms_no_other(name, message):
    with pytest.raises(BackendError, match=message):
        use(name)
    assert chosen(nki="0.1")[0] == "beta1"


def test_backends_lists_names_without_loading_any():
    assert list(backends()) == ["absent", "beta1", "beta2", "hollow", "nkigen-lite", "neuron"]
    assert "beta1" in backends()
    assert len(backends()) == 6
    assert backends().get("beta9") is None
