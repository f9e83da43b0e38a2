"""`nl.shared_constant`: tensors in shared HBM whose content is part of the kernel.

0.2 documents `(constant, dtype=None)` on a trace-time tensor of its own, which no public text
describes further, and the path of a file from SDK 2.28 on; later versions `(constant)` on a NumPy
array or the path of a .npy file. Here every version takes both, and 0.2 casts to `dtype`. A path
that is not absolute is one from the working directory, as for np.load.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from neuroncore.core import as_dtype
from neuroncore.errors import AttributeValueError, DTypeError, LaunchError, ShapeError
from neuroncore.launch import running
from neuroncore.memory import View
from nki_beta2._jit import Language
from nki_dtypes import (
    DType,
    bfloat16,
    cast,
    float8_e4m3fn,
    float8_e5m2,
    float8_e8m0fnu,
    float16,
    float32,
    int8,
    int16,
    int32,
    uint8,
    uint16,
    uint32,
)

RULE = "NKI: nl.shared_constant"
DOCUMENTED = (
    float32, float16, bfloat16, int32, int16, int8, uint32, uint16, uint8, float8_e4m3fn,
    float8_e5m2, float8_e8m0fnu,
)  # fmt: skip
"""Element types of arrays, as the page of nl.shared_constant lists them. Packed types and
tfloat32, untested there by its own word, no NumPy array has."""


_NARROWER = {np.dtype(np.float64): np.float32, np.dtype(np.int64): np.int32}
"""NumPy's 64 bits are a default, not a wish, where a dtype is given."""


def make_shared_constant(language: Language) -> Callable[..., View]:
    """`nl.shared_constant` of this version."""

    def shared_constant(constant: Any) -> View:
        """A tensor in shared HBM that holds a NumPy array, or that of a .npy file.

        Nothing writes it; all programs of a launch have the same. Raises DTypeError, ShapeError,
        AttributeValueError or LaunchError.
        """
        array = _array_of(constant)
        return _constant(array, _documented(array))

    def shared_constant_of(constant: Any, dtype: Any = None) -> View:
        """A tensor in shared HBM that holds a NumPy array, or that of a .npy file, cast to `dtype`.

        Nothing writes it; all programs of a launch have the same. Raises DTypeError, ShapeError,
        AttributeValueError or LaunchError.
        """
        array = _array_of(constant)
        if dtype is None:
            return _constant(array, _documented(array))
        kind = as_dtype(dtype, position=1)
        narrow = array.astype(_NARROWER.get(array.dtype, array.dtype))
        return _constant(cast(narrow, kind, from_=as_dtype(narrow.dtype, "constant", 0)), kind)

    return shared_constant if language.version >= (0, 3) else shared_constant_of


def _constant(array: np.ndarray, kind: DType) -> View:
    """The tensor that all programs of the launch share."""
    launch = running("nl.shared_constant")
    core = launch.core
    made = launch.share(lambda: core.constant(array, kind))
    if any(launch.program) and not _holds(made, array.astype(core.stored_as(kind)), kind):
        raise LaunchError(
            "the programs of this launch create different constants",
            expected=f"shape {made.shape}, {made.dtype}, and the first program's elements",
            got=f"shape {array.shape}, {kind}",
            hint="constants are the same on both cores: leave nl.program_id out of them",
            rule=f"{RULE}, LNC=2",
        )
    return made


def _holds(made: View, array: np.ndarray, kind: DType) -> bool:
    same = made.storage.constant and made.shape == array.shape and made.dtype is kind
    return same and made.array.tobytes() == array.tobytes()


def _array_of(given: Any) -> np.ndarray:
    """What the kernel gave, as an array of one dimension or more."""
    array = _loaded(given) if isinstance(given, str) else given
    if not isinstance(array, np.ndarray):
        raise AttributeValueError(
            "not a constant",
            expected="a NumPy array, or the path of a .npy file",
            got=f"{array!r}"[:80] if isinstance(array, View) else f"a {type(array).__name__}",
            hint="np.array(…) makes one of numbers and lists, outside of the kernel",
            operand="constant",
            position=0,
            rule=RULE,
        )
    if not array.ndim or not array.size:
        raise ShapeError(
            "a constant without " + ("elements" if array.ndim else "dimensions"),
            expected="one or more",
            got=f"shape {array.shape}",
            hint=None if array.ndim else "array.reshape(1)",
            operand="constant",
            position=0,
            rule=RULE,
        )
    return array


def _loaded(path: str) -> np.ndarray:
    """The array of a .npy file."""
    try:
        if Path(path).suffix != ".npy":
            raise ValueError("its name does not end in .npy")
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as wrong:
        raise AttributeValueError(
            f"no constant can be read from {path!r}: {wrong}",
            expected="the path of a .npy file, absolute or from the working directory",
            operand="constant",
            position=0,
            rule=RULE,
        ) from None


def _documented(array: np.ndarray) -> DType:
    """The element type, if constants have it."""
    kind = as_dtype(array.dtype, "constant", 0)
    if kind in DOCUMENTED:
        return kind
    raise DTypeError(
        f"a constant of {kind}",
        expected=", ".join(map(str, DOCUMENTED)),
        got=f"shape {array.shape}, {kind}",
        hint=f"give its bytes, array.view(np.uint8), and look at them with .view(nl.{kind})",
        operand="constant",
        position=0,
        rule=RULE,
    )
