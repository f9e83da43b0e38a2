"""Specs of a command line, `float32[128,512]`, and arrays of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import ml_dtypes
import numpy as np

from nki_dtypes import DType, bool_, cast

_SPEC = re.compile(r"\s*([\w.]+)\s*\[\s*(?:\(\s*\))?([\d\s,]*)\]\s*")


def split_spec(text: str) -> tuple[str, tuple[int, ...]] | None:
    """The name of the dtype and the shape of `f32[128, 512]`; None for another text."""
    found = _SPEC.fullmatch(text)
    if found is None:
        return None
    return found[1], tuple(int(n) for n in found[2].split(",") if n.strip())


def random_array(dtype: DType, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Standard normal numbers; integers of -8 to 8 (from 0 without a sign); bool at random."""
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
