"""The module tree that answers `import nki`."""

from __future__ import annotations

from operator import attrgetter

import pytest

from neuroncore.errors import AttributeValueError, LaunchError, UnsupportedError
from neuroncore.machine.backend import Backend, Choice
from nki_beta2 import BACKEND, Beta2, language

NAMES = {
    "nki",
    "nki.language",
    "nki.isa",
    "nki.isa.constants",
    "nki.typing",
    "nki.tensor",
    "nki.dtype",
    "nki.language.dtypes",
    "nki.compiler",
    "nki.builtin",
    "nki.meta",
    "nki.experimental",
    "nki.collectives",
}


def test_the_backend_keeps_the_protocol():
    assert isinstance(BACKEND, Backend)
    assert (BACKEND.name, BACKEND.top_level, BACKEND.default_version) == ("beta2", "nki", "0.7")


def test_versions_are_0_2_to_0_7():
    assert BACKEND.versions == ("0.2", "0.3", "0.4", "0.5", "0.6", "0.7")


@pytest.mark.parametrize("version", BACKEND.versions)
def test_every_module_is_answered_with_its_parents(version):
    modules = BACKEND.modules(Choice("beta2", version))

    assert set(modules) == NAMES | ({"nki.meta.tensor"} if version == "0.2" else set())
    assert modules["nki"].language is modules["nki.language"]
    assert modules["nki"].isa.constants is modules["nki.isa.constants"]
    assert modules["nki"].__version__ == f"{version}.0"


def test_the_same_choice_has_the_same_modules():
    again = Beta2().modules(Choice("beta2", "0.6"))

    assert BACKEND.modules(Choice("beta2", "0.6"))["nki"] is again["nki"]
    assert BACKEND.modules(Choice("beta2", "0.5"))["nki"] is not again["nki"]


@pytest.mark.parametrize(
    ("version", "hint"), [("0.1", "beta1"), ("0.8", "one of 0.2"), ("", "one of 0.2")]
)
def test_other_versions_are_rejected(version, hint):
    with pytest.raises(LaunchError, match=hint):
        language(version)


def test_an_unknown_option_is_rejected():
    with pytest.raises(LaunchError, match="unknown option 'fast'"):
        language("0.6", fast=True)
    with pytest.raises(LaunchError, match="uninitialized does not take 'one'"):
        language("0.6", uninitialized="one")


@pytest.mark.parametrize(
    ("version", "module", "name", "text"),
    [
        ("0.2", 1, "full", r"nki\.language\.full is not part of NKI 0\.2\n.*NKI 0\.3 to 0\.7"),
        ("0.6", 1, "flaot32", r"not part of NKI 0\.6 as modelled here\n.*did you mean float32"),
        ("0.6", 2, "nc_matmull", r"did you mean nc_matmul"),
        ("0.5", 2, "NkiInstruction", r"nki\.isa\.NkiInstruction .*it is part of NKI 0\.6"),
        ("0.6", 1, "sbuf.ptr", r"sbuf has no ptr\n.*regions of a memory are of NKI 0\.2"),
        ("0.2", 1, "sbuf.ptr", r"sbuf has no ptr\n.*regions of a memory are of NKI 0\.2"),
        ("0.2", 2, "dma_engine.gpsimd_dma", r"engine\.dma has no gpsimd_dma\n.*from 0\.3 on"),
        ("0.6", 2, "oob_mode.skip.next", r"has no next"),
        ("0.2", 1, "tile_size.psum_min_align", r"no document prints its value"),
        ("0.6", 1, "tile_size.pmin", r"nl\.tile_size has no pmin\n.*expected: bn_stats_fmax"),
        ("0.5", 0, "experimental.while_loop", r"while_loop is not part of NKI 0\.5\n.*NKI 0\.6"),
        ("0.6", 0, "meta.tensor", r"nki\.meta\.tensor is not part of NKI 0\.6\n.*NKI 0\.2"),
        ("0.2", 0, "meta.tensor.zeros", r"zeros is not part of NKI 0\.2 as modelled"),
        ("0.2", 0, "simulate", r"nki\.simulate is not part of NKI 0\.2\n.*NKI 0\.3 to 0\.7"),
    ],
)
def test_a_name_that_is_not_there_says_who_has_it(version, module, name, text):
    with pytest.raises(UnsupportedError, match=f"(?s){text}"):
        attrgetter(name)(language(version)[module])


def test_code_may_ask_whether_a_name_is_there():
    nki, nl, _ = language("0.2")

    assert not hasattr(nl, "full")
    assert getattr(nki, "simulate", None) is None


@pytest.mark.parametrize("name", ["address", "device"])
def test_what_tensors_do_not_have_is_rejected_by_name(every, name, ramp):
    def kernel(x):
        assert not hasattr(x, name)
        return getattr(x, name)

    with pytest.raises(UnsupportedError, match=f"NkiTensor has no {name}"):
        every.run(kernel, ramp)


def test_while_loop_has_an_earlier_name(now):
    assert now.nki.experimental.while_loop is now.nl.while_loop


def test_logical_not_is_a_name_in_0_2_and_no_document_says_of_what(speak, ramp):
    old = speak("0.2")

    def kernel(x):
        old.nisa.tensor_scalar(old.tile(x), old.tile(x), old.nl.logical_not, None)

    with pytest.raises(UnsupportedError, match=r"op0=nl\.equal, operand0=0\.0"):
        old.nl.logical_not(3)
    with pytest.raises(AttributeValueError, match="no document says what an instruction makes of"):
        old.run(kernel, ramp)


@pytest.mark.parametrize(("version", "name"), [("0.2", "add"), ("0.2", "exp"), ("0.6", "prelu")])
def test_operations_that_are_no_functions_are_rejected_by_name(speak, version, name):
    with pytest.raises(UnsupportedError, match=rf"nl\.{name} is not a function on tiles"):
        getattr(speak(version).nl, name)(3)


@pytest.mark.parametrize("version", BACKEND.versions[1:])
def test_cpu_simulate_is_another_name_of_simulate(speak, version):
    nki = speak(version).nki

    assert nki.cpu_simulate is nki.simulate


def test_annotations_are_accepted(now, ramp):
    tensor = BACKEND.modules(now.nki.jit(lambda: None).choice)["nki.typing"].tensor

    def kernel(x: tensor[4, 8]) -> tensor:
        return now.out(x)

    assert now.run(kernel, ramp).shape == (4, 8)


def test_classes_of_kernel_code_derive_from_nki_object(every):
    class Config(every.nl.NKIObject):
        size = 3

    assert every.inside(lambda: Config().size) == 3


def test_dtypes_are_the_same_in_every_module(every):
    modules = BACKEND.modules(Choice("beta2", every.version))

    for name in ("nki.dtype", "nki.language.dtypes"):
        assert modules[name].bfloat16 is every.nl.bfloat16
        assert not hasattr(modules[name], "DType")


@pytest.mark.parametrize("name", ["compiler", "builtin"])
def test_modules_that_are_only_imported_offer_nothing(every, name):
    module = getattr(every.nki, name)

    if (every.version, name) != ("0.7", "compiler"):
        assert module.__all__ == []
    with pytest.raises(UnsupportedError, match=rf"nki\.{name}\.parse is not part of NKI"):
        _ = module.parse


def test_registers_are_the_scalars_of_0_2(speak):
    old = speak("0.2")

    assert isinstance(old.inside(old.nisa.register_alloc), old.nki.typing.scalar)
