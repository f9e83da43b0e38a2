"""`nl.shared_constant`: NumPy arrays and .npy files as tensors that nothing writes."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from neuroncore.errors import (
    AttributeValueError,
    DTypeError,
    ImmutableError,
    KernelError,
    LaunchError,
    ShapeError,
)

DTYPES = [
    "float32", "float16", "bfloat16", "int32", "int16", "int8", "uint32", "uint16", "uint8",
    "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu",
]  # fmt: skip
TABLE = np.arange(12, dtype=np.float32).reshape(3, 4)


def given_back(speaker, constant, *more):
    """A kernel's result: the constant through a tile."""
    return speaker.run(
        lambda: speaker.out(speaker.tile(speaker.nl.shared_constant(constant, *more)))
    )


def rejected(speaker, constant, *more) -> KernelError:
    with pytest.raises(KernelError) as caught:
        speaker.run(lambda: speaker.nl.shared_constant(constant, *more))
    return caught.value


def test_an_array_is_a_tensor_in_shared_hbm(every):
    made = every.inside(lambda: every.nl.shared_constant(TABLE))

    assert (made.shape, made.dtype.name, made.buffer) == ((3, 4), "float32", every.nl.shared_hbm)
    assert given_back(every, TABLE).tobytes() == TABLE.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_stay_as_they_are(now, dtype):
    bits = np.random.default_rng(0).integers(0, 256, 64, dtype=np.uint8)
    array = bits.view(np.dtype(dtype)).reshape(2, -1)

    assert given_back(now, array).tobytes() == array.tobytes()


def test_strides_of_the_array_do_not_matter(now):
    assert np.array_equal(given_back(now, TABLE.T[::-1]), TABLE.T[::-1])


def test_a_later_change_of_the_array_is_none_of_the_constant(now):
    array = TABLE.copy()

    def kernel():
        made = now.nl.shared_constant(array)
        array[...] = 0
        return now.out(now.tile(made))

    assert np.array_equal(now.run(kernel), TABLE)


def test_a_file_is_found_from_the_working_directory(every, tmp_path: Path, monkeypatch):
    np.save(tmp_path / "table.npy", TABLE)
    monkeypatch.chdir(tmp_path)

    assert np.array_equal(given_back(every, "table.npy"), TABLE)
    assert np.array_equal(given_back(every, str(tmp_path / "table.npy")), TABLE)


def test_only_the_oldest_version_casts(speak):
    old, new = speak("0.2"), speak("0.3")

    cast = given_back(old, np.array([[0.5, 300.0]]), old.nl.bfloat16)

    assert cast.dtype == ml_dtypes.bfloat16
    assert cast.astype(float).tolist() == [[0.5, 300.0]]
    assert given_back(old, np.array([[0, 7]]) > 0, old.nl.uint8).tolist() == [[0, 1]]
    assert "takes 1 positional argument but 2 were given" in rejected(new, TABLE, 1).what


def test_nothing_writes_a_constant(every):
    def kernel():
        made = every.nl.shared_constant(TABLE)
        every.nisa.dma_copy(dst=made, src=every.tile(made))

    with pytest.raises(ImmutableError, match="dst is read-only"):
        every.run(kernel)


@pytest.mark.parametrize(
    ("constant", "error", "what"),
    [
        ([1.0, 2.0], AttributeValueError, "not a constant"),
        (2.0, AttributeValueError, "not a constant"),
        (None, AttributeValueError, "not a constant"),
        (np.float32(3), AttributeValueError, "not a constant"),
        (np.array(3.0, np.float32), ShapeError, "without dimensions"),
        (np.zeros((0, 4), np.float32), ShapeError, "without elements"),
        (np.zeros(3), DTypeError, "float64"),
        (np.zeros(3, np.int64), DTypeError, "int64"),
        (np.zeros(3, bool), DTypeError, "a constant of bool_"),
        (np.zeros(3, ml_dtypes.float8_e4m3), DTypeError, "a constant of float8_e4m3"),
        (np.array([None, 1]), DTypeError, "not an NKI dtype"),
        (np.zeros(3, ">f4"), DTypeError, "dtype"),
        ("missing.npy", AttributeValueError, "no constant can be read from 'missing.npy'"),
        ("table.txt", AttributeValueError, "does not end in .npy"),
    ],
    ids=str,
)
def test_what_is_no_constant_is_rejected(every, constant, error, what):
    wrong = rejected(every, constant)

    assert isinstance(wrong, error)
    assert what in wrong.what
    assert (wrong.operand, wrong.position) == ("constant", 0)


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"text"], ids=["empty", "cut", "text"])
def test_a_file_that_is_none_is_rejected(now, tmp_path: Path, content):
    (tmp_path / "x.npy").write_bytes(content)

    assert "no constant can be read" in rejected(now, str(tmp_path / "x.npy")).what


def test_objects_in_a_file_are_not_unpickled(now, tmp_path: Path):
    np.save(tmp_path / "x.npy", np.array([{}]), allow_pickle=True)

    assert "no constant can be read" in rejected(now, str(tmp_path / "x.npy")).what


def test_a_tensor_is_no_constant(now):
    def kernel():
        now.nl.shared_constant(now.nl.ndarray((2, 2), now.nl.float32))

    with pytest.raises(AttributeValueError, match="not a constant"):
        now.run(kernel)


def test_outside_of_a_kernel_there_is_none(now):
    with pytest.raises(LaunchError, match=r"nl\.shared_constant is used outside"):
        now.nl.shared_constant(TABLE)


def test_both_cores_have_the_same(now):
    nl = now.nl

    def same():
        return now.out(now.tile(nl.shared_constant(TABLE)))

    def other():
        return now.out(now.tile(nl.shared_constant(TABLE + np.float32(nl.program_id(0)))))

    assert np.array_equal(now.nki.jit(same)[2](), TABLE)
    with pytest.raises(LaunchError, match="create different constants"):
        now.nki.jit(other)[2]()


@pytest.mark.parametrize("precise", [True, False])
def test_low_floats_survive_imprecise_storage(speak, precise):
    speaker = speak("0.6", precise=precise)
    array = np.array([[0.1, -0.0, 3.5]], ml_dtypes.bfloat16)

    assert given_back(speaker, array).tobytes() == array.tobytes()
