"""Four lanes in a word: order, bits, round trips, rejections."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nki_dtypes import ALL, DTypeError, pack_x4, resolve, unpack_x4

PACKED = [d.name for d in ALL if d.is_packed]


def test_lane_0_is_at_the_least_significant_bits():
    lanes = np.array([0x11, 0x22, 0x33, 0x44], np.uint8).view(ml_dtypes.float8_e5m2)
    assert hex(pack_x4(lanes, "float8_e5m2_x4")[0]) == "0x44332211"
    nibbles = np.array([1, 2, 3, 4], np.uint8).view(ml_dtypes.float4_e2m1fn)
    assert hex(pack_x4(nibbles, "float4_e2m1fn_x4")[0]) == "0x4321"


def test_bits_above_a_nibble_do_not_leak_into_the_next_lane():
    dirty = np.array([0xF1, 0xA2, 0x53, 0x04], np.uint8).view(ml_dtypes.float4_e2m1fn)
    assert hex(pack_x4(dirty, "float4_e2m1fn_x4")[0]) == "0x4321"


@pytest.mark.parametrize("name", PACKED)
@given(data=st.data())
def test_packing_undoes_unpacking(name: str, data: st.DataObject):
    word = resolve(name).storage
    values = data.draw(st.lists(st.integers(0, np.iinfo(word).max), min_size=1, max_size=8))
    words = np.array([values, values], word)
    lanes = unpack_x4(words, name)
    assert lanes.shape == (2, 4 * len(values))
    np.testing.assert_array_equal(pack_x4(lanes, name), words)


@pytest.mark.parametrize("name", PACKED)
def test_values_are_cast_to_the_lane_type(name: str):
    values = np.array([[0.5, 1.0, -1.5, 3.2], [6.0, -6.0, 0.0, 0.1]], np.float32)
    expected = values.astype(resolve(name).element.storage).astype(np.float32)
    got = unpack_x4(pack_x4(values, name), name).astype(np.float32)
    np.testing.assert_array_equal(got, expected)


def test_a_large_array_packs_like_its_elements():
    values = np.random.default_rng(0).uniform(-8, 8, (50, 400)).astype(np.float32)
    lanes = unpack_x4(pack_x4(values, "float4_e2m1fn_x4"), "float4_e2m1fn_x4")
    np.testing.assert_array_equal(
        lanes.astype(np.float32), values.astype(ml_dtypes.float4_e2m1fn).astype(np.float32)
    )


def test_any_strides_pack():
    values = np.arange(32, dtype=np.float32).reshape(8, 4)
    np.testing.assert_array_equal(
        pack_x4(values.T[::2], "float8_e4m3fn_x4"),
        pack_x4(values.T[::2].copy(), "float8_e4m3fn_x4"),
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pack_x4(np.zeros((2, 6), np.float32), PACKED[0]), r"multiple of 4\n.*\(2, 6\)"),
        (lambda: pack_x4(np.float32(1), PACKED[0]), "multiple of 4"),
        (lambda: pack_x4(np.zeros(4, np.float32), "bf16"), "bfloat16 is not a packed type"),
        (lambda: unpack_x4(np.zeros(4, np.uint16), "float8_e5m2_x4"), "an array of uint32"),
    ],
)
def test_what_cannot_be_packed_is_rejected(call, message):
    with pytest.raises(DTypeError, match=message):
        call()
