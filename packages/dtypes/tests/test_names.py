"""Every name leads to its format, and a name that leads nowhere says where to go instead."""

import pickle
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nki_dtypes import ALIASES, ALL, STORAGE_DTYPES, DTypeError, UnknownDTypeError, resolve


class FakeTorchDtype:
    """As torch's: no name, and a repr that is one."""

    __module__ = "torch"

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


@pytest.mark.parametrize("alias", ALIASES)
def test_every_alias_is_accepted_with_module_case_and_space(alias: str):
    assert resolve(alias) is resolve(f" nl.{alias.upper()} ") is ALIASES[alias]


@pytest.mark.parametrize(
    ("short", "name"),
    [
        ("bf16", "bfloat16"),
        ("fp16", "float16"),
        ("half", "float16"),
        ("tf32", "tfloat32"),
        ("float32r", "tfloat32"),
        ("bool", "bool_"),
        ("float8e4", "float8_e4m3"),
        ("float8e5", "float8_e5m2"),
        ("<f4", "float32"),
        ("|u1", "uint8"),
        ("torch.bfloat16", "bfloat16"),
        ("jnp.float8_e4m3fn", "float8_e4m3fn"),
        ("neuronxcc.nki.language.tfloat32", "tfloat32"),
    ],
)
def test_well_known_strings(short: str, name: str):
    assert str(resolve(short)) == name


@pytest.mark.parametrize(
    "name", ["int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "float32"]
)
def test_numpy_types_in_every_spelling(name: str):
    spellings = [np.dtype(name), getattr(np, name), np.dtype(name).str, f"np.{name}"]
    assert {str(resolve(s)) for s in spellings} == {name}


@pytest.mark.parametrize(
    "name", ["bfloat16", "float8_e4m3", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"]
)
def test_ml_dtypes_types_in_every_spelling(name: str):
    spellings = [getattr(ml_dtypes, name), np.dtype(name), f"ml_dtypes.{name}"]
    assert {str(resolve(s)) for s in spellings} == {name}


def test_python_and_numpy_bool_are_bool_():
    assert {str(resolve(b)) for b in (bool, np.bool_, np.dtype(bool))} == {"bool_"}


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "uint8"])
def test_other_frameworks_are_recognised_by_name(name: str):
    jax_like = type(name, (), {"__module__": "jax.numpy"})
    for stranger in (FakeTorchDtype(f"torch.{name}"), jax_like, SimpleNamespace(name=name)):
        assert str(resolve(stranger)) == name


def test_real_torch_dtypes_where_torch_is_installed():
    torch = pytest.importorskip("torch")
    pairs = {torch.bfloat16: "bfloat16", torch.half: "float16", torch.bool: "bool_"}
    assert {d: str(resolve(d)) for d in pairs} == pairs


def test_a_name_is_looked_up_once():
    class Name(str):
        asked = 0
        __hash__ = str.__hash__

        def strip(self, *chars: str) -> str:  # type: ignore[override]
            Name.asked += 1
            return super().strip(*chars)

    name = Name("  bf16 ")
    assert resolve(name) is resolve(name)
    assert Name.asked == 1


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("float64", "use float32"),
        (np.float64, "use float32"),
        (float, "use float32"),
        (np.dtype(np.int64), "use int32"),
        (int, "use int32"),
        ("uint64", "use uint32"),
        ("complex64", "real and imaginary"),
        ("i8", "write int8"),
        ("bfloat", "did you mean bfloat16"),
        ("flaot32", "did you mean float32"),
        ("float8_e4m3fnuz", "use float8_e4m3 or float8_e4m3fn"),
        ("float4_e2m1fn", "pack_x4"),
        (ml_dtypes.float4_e2m1fn, "pack_x4"),
        ("fp8", "several 8-bit floats"),
        (np.dtype(">f4"), "little-endian"),
    ],
)
def test_a_wrong_name_is_answered_with_a_right_one(wrong: object, hint: str):
    with pytest.raises(UnknownDTypeError) as caught:
        resolve(wrong)
    assert hint in caught.value.hint


def test_the_message_says_what_was_wrong_and_what_was_expected():
    with pytest.raises(DTypeError) as caught:
        resolve("bfloat")
    what, expected, got, hint = str(caught.value).splitlines()
    assert what == "'bfloat' is not an NKI dtype"
    assert expected.startswith("    expected: one of bool_, int8, ")
    assert (got, hint) == (
        "    got: 'bfloat' (a string)",
        "    hint: did you mean bfloat16 or float32 or float16?",
    )
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize("thing", [None, 3, [1], {}, object(), np.zeros(3), np.dtype("f4,i4"), ""])
def test_what_is_no_name_at_all_is_rejected(thing: object):
    with pytest.raises(UnknownDTypeError):
        resolve(thing)


def test_an_object_whose_repr_fails_is_still_reported():
    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError

    with pytest.raises(UnknownDTypeError, match="<Broken> is not an NKI dtype"):
        resolve(Broken())


def test_storage_accepts_what_resolve_accepts():
    for name in ("bf16", "bfloat16", "nl.bfloat16", ml_dtypes.bfloat16, resolve("bf16")):
        assert STORAGE_DTYPES[name] == np.dtype(ml_dtypes.bfloat16)
        assert name in STORAGE_DTYPES
    assert {STORAGE_DTYPES[alias] for alias in STORAGE_DTYPES} == {d.storage for d in ALL}


def test_storage_is_a_read_only_mapping():
    assert "float64" not in STORAGE_DTYPES
    assert STORAGE_DTYPES.get("float64") is None
    with pytest.raises(TypeError):
        STORAGE_DTYPES["bf16"] = np.dtype(np.float32)  # type: ignore[index]


@given(st.text(max_size=30))
@example("torch.")
@example(".")
@example("nl..bf16")
def test_any_string_names_a_format_or_is_rejected(text: str):
    try:
        found = resolve(text)
    except UnknownDTypeError as error:
        assert error.got
    else:
        assert found in ALL
        assert found.name in ALIASES


@given(st.sampled_from(sorted(ALIASES)), st.integers(0, 30), st.characters())
def test_a_mistyped_name_never_leads_to_another_width(alias: str, at: int, typo: str):
    try:
        found = resolve(f"{alias[:at]}{typo}{alias[at:]}")
    except UnknownDTypeError:
        return
    assert found in ALL
