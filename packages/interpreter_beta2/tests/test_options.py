"""Where documents disagree about the language: each option, and what either of its values does."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.errors import (
    AttributeValueError,
    CapacityError,
    LaunchError,
    ShapeError,
    SignatureError,
)
from neuroncore.instructions import KernelWarning

ULP = 2.0**-23  # of float32; exp is within 4, a sum of few terms and a quotient lose as many

TALL = np.arange(8, dtype=np.float32).reshape(4, 2)
COLUMN = np.array([[1], [2], [3], [4]], np.float32)

# -- shapes of two tiles --------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["0.3", "0.6"])
@pytest.mark.parametrize("name", ["add", "maximum", "divide", "fmod", "less"])
def test_nl_functions_repeat_a_column_or_reject_it(speak, version, name):
    def kernel(lang):
        function = getattr(lang.nl, name)
        return lambda x, y: lang.out(function(lang.tile(x), lang.tile(y)))

    repeating, rejecting = (speak(version, tile_broadcast=rule) for rule in ("repeat", "reject"))
    reference = {"fmod": np.fmod}.get(name) or getattr(np, name)

    result = repeating.run(kernel(repeating), TALL, COLUMN)
    with pytest.raises(ShapeError, match="the shapes of two tiles differ"):
        rejecting.run(kernel(rejecting), TALL, COLUMN)

    np.testing.assert_allclose(result, reference(TALL, COLUMN), rtol=ULP)
    same = rejecting.run(kernel(rejecting), TALL, TALL + 1)
    np.testing.assert_allclose(same, reference(TALL, TALL + 1), rtol=ULP)


def test_functions_that_are_made_of_others_need_no_broadcast_of_the_kernel(speak):
    lang = speak("0.6", tile_broadcast="reject")

    result = lang.run(lambda x: lang.out(lang.nl.softmax(lang.tile(x), axis=1)), TALL)

    powers = np.exp(TALL.astype(np.float64))
    np.testing.assert_allclose(result, powers / powers.sum(1, keepdims=True), rtol=8 * ULP)


# -- registers ------------------------------------------------------------------------------------


def moved(lang, move):
    """What a register holds after `move(register)`, stored into a tensor."""

    def kernel():
        register, tile = lang.nisa.register_alloc(1), lang.nl.ndarray((1, 1), dtype=lang.nl.int32)
        move(register)
        lang.nisa.register_store(tile, register)
        return lang.out(tile)

    return lang.run(kernel).item()


@pytest.mark.parametrize("version", ["0.3", "0.4", "0.6"])
def test_a_register_takes_a_constant_or_only_a_register(speak, version):
    allowing, rejecting = (speak(version, register_constant=r) for r in ("allow", "reject"))

    assert moved(allowing, lambda r: allowing.nisa.register_move(r, 7)) == 7
    with pytest.raises(SignatureError, match="src is a compile-time number") as raised:
        moved(rejecting, lambda r: rejecting.nisa.register_move(r, 7))
    assert "nisa.register_alloc(number)" in str(raised.value)
    other = rejecting.nisa.register_move
    assert moved(rejecting, lambda r: other(r, rejecting.nisa.register_alloc(9))) == 9


def test_the_immediate_of_0_2_is_never_rejected(speak):
    lang = speak("0.2", register_constant="reject")

    assert moved(lang, lambda r: lang.nisa.register_move(r, imm=7)) == 7


# -- addresses ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["0.3", "0.6"])
@pytest.mark.parametrize(
    ("dtype", "offset"), [("float32", 2048), ("bfloat16", 2048), ("uint8", np.int64(2048))]
)
def test_the_offset_of_an_address_is_in_bytes_or_in_elements(speak, version, dtype, offset):
    def placed(lang):
        kind = getattr(lang.nl, dtype)
        make = lambda: lang.nl.ndarray((4, 2), kind, lang.nl.sbuf, address=(32, offset))  # noqa: E731
        return lang.inside(lambda: make().storage.address)

    assert placed(speak(version, address_unit="bytes")) == (32, 2048)
    wide = {"float32": 4, "bfloat16": 2, "uint8": 1}[dtype]
    assert placed(speak(version, address_unit="elements")) == (32, 2048 * wide)


def test_elements_that_do_not_end_in_a_bank_are_rejected(speak):
    def kernel(lang, offset):
        return lambda: lang.nl.ndarray((4, 2), lang.nl.float32, lang.nl.psum, address=(0, offset))

    elements, in_bytes = speak("0.6", address_unit="elements"), speak("0.6")

    assert elements.inside(lambda: kernel(elements, 512)().storage.address) == (0, 2048)
    with pytest.raises(CapacityError, match="PSUM address 512 is not at a bank"):
        in_bytes.inside(kernel(in_bytes, 512))


@pytest.mark.parametrize("address", [(0,), (0, 1.5), "here", (-1, 0)])
def test_what_is_no_address_is_rejected_in_either_unit(speak, address):
    for unit in ("bytes", "elements"):
        lang = speak("0.6", address_unit=unit)
        with pytest.raises(AttributeValueError, match="is not an address"):
            lang.inside(lambda: lang.nl.ndarray((4, 2), lang.nl.int8, address=address))  # noqa: B023


# -- devices --------------------------------------------------------------------------------------


def test_whether_trn1_still_runs_is_an_option(speak):
    def copied(support, target):
        lang = speak("0.6", target, trn1_support=support)
        return lang.run(lambda x: lang.out(lang.tile(x)), TALL)

    assert np.array_equal(copied("run", "trn1"), TALL)
    with pytest.warns(KernelWarning, match="NKI 0.6 on trn1, which the FAQ does not list"):
        assert np.array_equal(copied("warn", "inf2"), TALL)
    with pytest.raises(LaunchError, match="which the FAQ does not list"):
        copied("reject", "trn1")
    assert np.array_equal(copied("reject", "trn2"), TALL)
