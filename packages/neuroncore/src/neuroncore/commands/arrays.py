"""Specs of a command line, `float32[128,512]`, and arrays of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import prod
from pathlib import Path

import ml_dtypes
import numpy as np

from neuroncore.commands.parser import MOST_ELEMENTS
from neuroncore.errors import OptionError
from nki_dtypes import DType, bool_, cast

_SIZES = r"(?:\s*[0-9]+\s*(?:,\s*[0-9]+\s*)*,?)?\s*"
_SPEC = re.compile(rf"\s*([\w.]+)\s*\[\s*(?:\(\s*\))?({_SIZES})\]\s*")
_MOST_DIGITS = 18
_MOST_DIMENSIONS = 32  # of NumPy 1; NumPy 2 takes 64


class SpecSizeError(OptionError):
    """A spec of an array that cannot exist."""

    def __init__(
        self, text: str, reason: str = "no array is that large", hint: str = "name a smaller shape"
    ) -> None:
        shown = text.strip() if len(text) < 80 else f"{text.strip()[:60]}…"
        super().__init__(f"{shown}: {reason}", hint=hint)
        self.place = None  # of the command line


def split_spec(text: str) -> tuple[str, tuple[int, ...]] | None:
    """The name of the dtype and the shape of `f32[128, 512]`; None for another text.

    Raises SpecSizeError for sizes that no array has.
    """
    found = _SPEC.fullmatch(text)
    if found is None:
        return None
    sizes = [size.strip() for size in found[2].split(",") if size.strip()]
    if len(sizes) > _MOST_DIMENSIONS:
        raise SpecSizeError(text, f"an array has at most {_MOST_DIMENSIONS} dimensions")
    if any(len(size.lstrip("0")) > _MOST_DIGITS for size in sizes):
        raise SpecSizeError(text)
    shape = tuple(map(int, sizes))
    if prod(shape) > MOST_ELEMENTS:
        raise SpecSizeError(text)
    return found[1], shape


def argument_spec(text: str) -> tuple[str, tuple[int, ...]] | None:
    """`split_spec` of an argument of a kernel. Raises SpecSizeError also for an empty array."""
    found = split_spec(text)
    if found is not None and 0 in found[1]:
        raise SpecSizeError(text, "an array without elements is not an argument of a kernel",
                            hint="name sizes of at least 1")  # fmt: skip
    return found


def random_array(dtype: DType, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Standard normal numbers; integers of -8 to 8 (from 0 without a sign); bool at random.

    Raises SpecSizeError where they do not fit the memory of this computer.
    """
    try:
        return _random_array(dtype, shape, rng)
    except MemoryError:
        text = f"{dtype}[{', '.join(map(str, shape))}]"
        raise SpecSizeError(text, "this computer has not enough memory for it") from None


def _random_array(dtype: DType, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if dtype is bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype.is_integer:
        low = 0 if dtype.name.startswith("u") else -8
        return rng.integers(low, 9, shape).astype(dtype.storage)
    return cast(rng.standard_normal(shape).astype(np.float32), dtype)


def save_arrays(file: Path, arrays: Iterable[np.ndarray]) -> None:
    """Write arrays for `load_arrays`: bytes, with the format's name and the shape as their key."""
    named = {
        f"{number} {array.dtype.name} {' '.join(map(str, array.shape))}": array
        for number, array in enumerate(map(np.asarray, arrays))
    }
    flat = {key: np.frombuffer(array.tobytes(), np.uint8) for key, array in named.items()}
    with file.open("wb") as stream:  # savez appends .npz to names
        np.savez(stream, **flat)  # type: ignore[arg-type]


def load_arrays(file: Path) -> list[np.ndarray]:
    """The arrays of a file, in order."""
    with np.load(file, allow_pickle=False) as saved:
        keys = [(key, *key.split()[1:]) for key in saved.files]
        return [
            saved[key].view(getattr(ml_dtypes, name, name)).reshape([int(n) for n in shape])
            for key, name, *shape in keys
        ]
