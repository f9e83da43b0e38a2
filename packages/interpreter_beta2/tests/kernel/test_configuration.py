"""Configurations, LNC degrees, frontends and kernels in kernels (0.7)."""

from __future__ import annotations

import inspect
import logging

import numpy as np
import pytest
from packages.interpreter_beta2.tests.conftest import speaker

from neuroncore.errors import (
    AttributeValueError,
    KernelError,
    LaunchError,
    SignatureError,
    UnsupportedError,
)
from neuroncore.instructions import KernelWarning

X = np.ones((2, 2), np.float32)


@pytest.fixture
def lang(monkeypatch):
    for name in ("NKI_PREFETCH_RING_SIZE", "NEURON_LOGICAL_NC_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    return speaker("0.7")


def compiler(lang):
    return lang.nki.compiler


def doubled(lang, **options):
    @lang.nki.jit(**options)
    def kernel(x):
        tile = lang.tile(x)
        lang.nisa.tensor_scalar(tile, tile, lang.nl.multiply, 2.0)
        return lang.out(tile)

    return kernel


# -- configurations -------------------------------------------------------------------------------


def test_the_signature_of_jit(lang):
    parameters = inspect.signature(lang.nki.jit).parameters
    assert list(parameters) == ["fn", "compile_config", "specialization_config", "kwargs"]
    assert parameters["compile_config"].kind is inspect.Parameter.KEYWORD_ONLY


def test_a_misspelt_field_is_named(lang):
    with pytest.raises(SignatureError, match="CompileConfig has no field prefech_auto") as raised:
        compiler(lang).CompileConfig(prefech_auto=True)
    assert "did you mean prefetch_auto?" in str(raised.value)
    with pytest.raises(SignatureError, match="SpecializationConfig has no field nested"):
        compiler(lang).SpecializationConfig(nested=True)


def test_configurations_are_accepted_and_noted(lang, caplog):
    nc = compiler(lang)
    config = nc.CompileConfig(address_rotation=nc.AddressRotation.DISABLE, prefetch_auto=True)

    with caplog.at_level(logging.INFO, logger="neuroncore.notes"):
        kernel = doubled(lang, compile_config=config, debug=True)

    assert (kernel(X) == 2).all()
    said = " ".join(record.getMessage() for record in caplog.records)
    assert "CompileConfig(address_rotation=AddressRotation.DISABLE)" in said
    assert "CompileConfig(prefetch_auto=True)" in said
    assert "nki.jit(debug=True)" in said
    assert "nki_alloc_fallback" not in said


@pytest.mark.parametrize(("name", "value"), [
    ("compile_config", {"prefetch_auto": True}), ("specialization_config", True),
])  # fmt: skip
def test_jit_takes_configurations_of_their_classes(lang, name, value):
    with pytest.raises(AttributeValueError, match=rf"nki\.jit\({name}=…\) is a"):
        doubled(lang, **{name: value})


@pytest.mark.parametrize(("name", "value"), [
    ("prefetch_auto", 1), ("address_rotation", "AUTO"), ("barrier_check", "yes"),
])  # fmt: skip
def test_fields_have_their_types(lang, name, value):
    with pytest.raises(AttributeValueError, match=rf"CompileConfig\({name}="):
        compiler(lang).CompileConfig(**{name: value})


def test_prefetch_auto_excludes_the_ring_of_the_environment(lang, monkeypatch):
    kernel = doubled(lang, compile_config=compiler(lang).CompileConfig(prefetch_auto=True))
    monkeypatch.setenv("NKI_PREFETCH_RING_SIZE", "4")

    with pytest.raises(LaunchError, match="prefetch_auto and the environment"):
        kernel(X)
    assert (doubled(lang)(X) == 2).all()


def test_up_to_0_6_nki_compiler_has_no_configurations(speak):
    with pytest.raises(AttributeError, match=r"it is part of NKI 0\.7"):
        _ = speak("0.6").nki.compiler.CompileConfig


# -- kernels in kernels ---------------------------------------------------------------------------


def calling(lang, inner, **options):
    @lang.nki.jit(**options)
    def outer(x):
        return inner(x)

    return outer


def configured(lang, **fields):
    return doubled(lang, compile_config=compiler(lang).CompileConfig(**fields))


def test_a_kernel_in_a_kernel_is_part_of_it(lang):
    assert (calling(lang, doubled(lang))(X) == 2).all()


def test_equal_configurations_agree(lang):
    same = compiler(lang).CompileConfig(dead_code_elim=False)
    inner = configured(lang, dead_code_elim=False)
    assert (calling(lang, inner, compile_config=same)(X) == 2).all()


def test_a_configuration_that_contradicts_is_an_error(lang):
    with pytest.raises(LaunchError, match="kernel kernel has another configuration than outer"):
        calling(lang, configured(lang, dead_code_elim=False))(X)


def test_or_a_warning_where_the_outer_kernel_allows_it(lang):
    allowed = compiler(lang).SpecializationConfig(allow_nested_config_override=True)
    outer = calling(lang, configured(lang, dead_code_elim=False), specialization_config=allowed)

    with pytest.warns(KernelWarning, match="dead_code_elim=False and not None; that of outer"):
        assert (outer(X) == 2).all()


def test_a_degree_that_contradicts_is_an_error(lang):
    outer = calling(lang, doubled(lang)[2])
    assert (outer[2](X) == 2).all()
    with pytest.raises(LaunchError, match=r"another configuration(.|\n)*LNC degree 2 and not 1"):
        outer(X)


# -- the LNC degree -------------------------------------------------------------------------------


def programs(lang):
    def kernel():
        seen.append((lang.nl.program_id(0), lang.nl.num_programs(0)))

    seen = []
    return lang.nki.jit(kernel), seen


@pytest.mark.parametrize(("bracket", "variable", "cores"), [
    (None, None, 1), (None, "1", 1), (None, "2", 2), (2, None, 2), (2, "2", 2), (1, "1", 1),
])  # fmt: skip
def test_the_degree_is_of_the_bracket_or_the_environment(
    lang, monkeypatch, bracket, variable, cores
):
    if variable:
        monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", variable)
    kernel, seen = programs(lang)

    (kernel if bracket is None else kernel[bracket])()

    assert seen == [(core, cores) for core in range(cores)]


def test_two_degrees_that_differ_are_an_error(lang, monkeypatch):
    monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", "2")
    with pytest.raises(LaunchError, match="two LNC degrees") as raised:
        doubled(lang)[1](X)
    assert "kernel[1] and NEURON_LOGICAL_NC_CONFIG=2" in str(raised.value)


@pytest.mark.parametrize("value", ["0", "3", "two"])
def test_a_degree_is_1_or_2(lang, monkeypatch, value):
    monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", value)
    with pytest.raises(LaunchError, match=f"NEURON_LOGICAL_NC_CONFIG={value} is not an LNC degree"):
        doubled(lang)(X)


def test_before_0_7_the_variable_is_the_compilers(speak, monkeypatch):
    monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", "2")
    kernel, seen = programs(speak("0.6"))
    kernel()
    assert seen == [(0, 1)]


# -- the frontend ---------------------------------------------------------------------------------


def test_the_former_frontend_has_neither_scalars_nor_configurations():
    lang = speaker("0.7", frontend="parser")
    assert (doubled(lang)(X) == 2).all()
    with pytest.raises(UnsupportedError, match="the configuration of kernel kernel under the form"):
        configured(lang, dead_code_elim=True)(X)
    with pytest.raises(UnsupportedError, match=r"nisa\.scalar_load under the former frontend"):
        lang.run(lambda n: lang.nisa.scalar_load(n) and None, np.zeros((1, 1), np.int32))

    def stores(i):
        lang.nisa.register_store(lang.nl.ndarray((1, 1), lang.nl.int32), i)

    lang.run(lambda: lang.nl.fori_loop(0, 2, stores))  # the variable is a register


@pytest.mark.parametrize(
    ("frontend", "runs"), [("version", True), ("parser", True), ("tracer", False)]
)
def test_the_tracer_of_0_6_takes_no_register_in_while(speak, frontend, runs):
    lang = speak("0.6", frontend=frontend)

    def kernel():
        while lang.nisa.register_alloc(0):
            pass

    if runs:
        lang.run(kernel)
    else:
        with pytest.raises(KernelError, match="the truth value of a register"):
            lang.run(kernel)
