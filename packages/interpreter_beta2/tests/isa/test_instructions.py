"""`nki.isa`: names, enums, handles, attribute values."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.errors import AttributeValueError, SignatureError
from neuroncore.instructions import KernelWarning
from nki_beta2 import BACKEND

INSTRUCTIONS = [
    *("activation", "affine_select", "dma_copy", "iota", "memset", "nc_matmul", "nc_transpose"),
    *("reciprocal", "tensor_copy", "tensor_reduce", "tensor_scalar", "tensor_tensor"),
]
# Codes as the 0.6 stubs print them.
CODES = {
    "engine": {"unknown": 0, "tensor": 1, "scalar": 2, "gpsimd": 3, "dma": 4, "vector": 5},
    "dge_mode": {"unknown": 0, "swdge": 1, "hwdge": 2, "none": 3},
    "oob_mode": {"error": 0, "skip": 1},
    "reduce_cmd": {"idle": 0, "reset": 1, "reduce": 2, "reset_reduce": 3, "load_reduce": 4},
}


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_every_version_has_the_instruction_and_help_for_it(every, name):
    function = getattr(every.nisa, name)

    assert function.__name__ == name
    assert function.__module__ == "nki.isa"
    assert len(function.__doc__.splitlines()) > 5


@pytest.mark.parametrize("name", CODES)
def test_enums_have_their_documented_members(every, name):
    kind = getattr(every.nisa, name)

    assert {m: kind[m].value for m in CODES[name]} == CODES[name]


@pytest.mark.parametrize("name", ["tensor", "vector", "scalar", "gpsimd", "unknown"])
def test_engines_have_old_aliases(every, name):
    assert getattr(every.nisa, f"{name}_engine") is every.nisa.engine[name]


def test_dma_engine_became_an_enum_with_0_3(every):
    if every.version == "0.2":
        assert every.nisa.dma_engine is every.nisa.engine.dma
    else:
        assert [m.name for m in every.nisa.dma_engine] == ["dma", "gpsimd_dma"]


def test_constants_are_the_enums_again(now):
    constants = BACKEND.modules(now.nki.jit(lambda: None).choice)["nki.isa.constants"]

    assert constants.dge_mode is now.nisa.dge_mode


def engine_by_code(lang):
    def kernel(x):
        t = lang.tile(x)
        lang.nisa.tensor_copy(t, t, engine=5)
        return lang.out(t)

    return kernel


@pytest.mark.parametrize("version", ["0.4", "0.5", "0.6"])
def test_integer_codes_are_rejected_from_0_4(speak, version, ramp):
    lang = speak(version)

    with pytest.raises(AttributeValueError, match="engine=5 is an integer code"):
        lang.run(engine_by_code(lang), ramp)


def test_integer_codes_are_members_in_0_2(speak, ramp):
    lang = speak("0.2")

    assert np.array_equal(lang.run(engine_by_code(lang), ramp), ramp)


def test_integer_codes_are_warned_about_in_0_3(speak, ramp):
    lang = speak("0.3")

    with pytest.warns(KernelWarning, match="engine=5 is an integer code, not a member"):
        assert np.array_equal(lang.run(engine_by_code(lang), ramp), ramp)


def test_an_option_says_what_integer_codes_are_in_0_3(speak, ramp):
    silent, strict = (speak("0.3", enum_codes=said) for said in ("ignore", "error"))

    assert np.array_equal(silent.run(engine_by_code(silent), ramp), ramp)
    with pytest.raises(AttributeValueError, match="engine=5 is an integer code"):
        strict.run(engine_by_code(strict), ramp)


def test_instructions_return_handles_from_0_6_on(every, ramp):
    returned = []

    def kernel(x):
        t = every.nl.ndarray((4, 8), every.nl.float32)
        for _ in range(2):  # the first call and the remembered one
            returned.append(every.nisa.dma_copy(t, x))

    every.run(kernel, ramp)

    if every.version >= "0.6":
        assert all(isinstance(handle, every.nisa.NkiInstruction) for handle in returned)
        assert returned[0] is not returned[1]
    else:
        assert returned == [None, None]


@pytest.mark.parametrize(
    "op",
    [np.add, np.max, max, lambda a, b: a, "plus", None, 3, [1]],
    ids=["ufunc", "numpy function", "builtin", "lambda", "str", "None", "int", "list"],
)
def test_an_operation_comes_from_nki_language(every, ramp, op):
    def kernel(x):
        t = every.tile(x)
        every.nisa.tensor_tensor(t, t, t, op)

    with pytest.raises(AttributeValueError):
        every.run(kernel, ramp)


@pytest.mark.parametrize("pattern", [[[1, 8]], ((1, 8),), ([1, 8],), [(1, 8)]], ids=str)
def test_a_pattern_is_pairs_in_lists_or_tuples(every, pattern):
    def kernel():
        t = every.nl.ndarray((2, 8), every.nl.int32)
        for _ in range(2):
            every.nisa.iota(t, pattern, 0)
        return every.out(t)

    assert np.array_equal(every.run(kernel), np.tile(np.arange(8), (2, 1)))


@pytest.mark.parametrize("given", [None, 3, "x", np.ones((4, 8), np.float32)], ids=repr)
@pytest.mark.parametrize("operand", ["dst", "src"])
def test_an_operand_is_a_tensor(every, ramp, operand, given):
    def kernel(x):
        t = every.tile(x)
        every.nisa.tensor_copy(**({"dst": t, "src": t} | {operand: given}))

    with pytest.raises(SignatureError, match=f"tensor_copy: {operand} cannot be a"):
        every.run(kernel, ramp)


def test_a_value_is_a_number(every):
    with pytest.raises(SignatureError, match="value cannot be a NoneType"):
        every.inside(lambda: every.nisa.memset(every.nl.ndarray((4, 8), every.nl.float32), None))


def test_an_instruction_may_be_named(every, ramp):
    def kernel(x):
        t = every.nl.ndarray((4, 8), every.nl.float32)
        every.nisa.dma_copy(dst=t, src=x, name="load_x")
        return every.out(t)

    assert np.array_equal(every.run(kernel, ramp), ramp)


@pytest.mark.parametrize("version", BACKEND.versions[2:])
def test_a_stage_of_activate2_is_left_out_with_bypass(speak, version, ramp):
    lang = speak(version, "trn3")
    nl, nisa = lang.nl, lang.nisa

    def kernel(x):
        t = lang.tile(x)
        nisa.activate2(t, nl.prelu, t, 16.0, 0.0, nl.subtract, nl.bypass, relu_param=0.5)
        return lang.out(t)

    less = ramp - 16
    assert np.array_equal(lang.run(kernel, ramp), np.where(less < 0, less / 2, less))
