"""Constants in NKI source: NumPy arrays behind the kernel, for nl.shared_constant.

NKI documents an array or the path of a .npy file; arrays keep the kernel in one file that runs from
anywhere. They are made outside of the kernel: inside, compilers of 0.2 and 0.3 take no NumPy.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from math import isfinite
from typing import Any

import numpy as np

from neuroncore.program.ir.constants import as_numbers, as_text
from neuroncore.program.ir.naming import underscored
from neuroncore.program.ir.nodes import Buffer
from nki_dtypes import DType, bool_, float8_e4m3, float32, tfloat32, uint8, uint16, uint32

MODULES = frozenset({"base64", "zlib", "ml_dtypes", "np"})
"""What the arrays may need."""

_CARRIERS: Mapping[DType, DType] = {bool_: uint8, float8_e4m3: uint8, tfloat32: float32}
"""What holds the bits of dtypes that nl.shared_constant does not document or NumPy has not."""


def carrier_of(dtype: DType) -> DType:
    """The dtype of the array that a constant of `dtype` is written as."""
    if dtype.is_packed:
        return {2: uint16, 4: uint32}[dtype.itemsize]
    return _CARRIERS.get(dtype, dtype)


def array_names(constants: list[Buffer], taken: Set[str]) -> dict[str, str]:
    """Constant → what its array is called in the source."""
    used = set(taken)
    return {buffer.name: underscored(buffer.name.upper(), used) for buffer in constants}


def with_imports(head: str, definitions: list[list[str]]) -> str:
    """The imports `head` of a kernel, sorted, with what the arrays need."""
    code = " ".join(line for lines in definitions for line in (lines[0], lines[-1]))
    needed = [n for n in sorted(MODULES) if re.search(rf"\b{n}\.", code)]
    own = [f"import {n}\n" for n in needed if n in sys.stdlib_module_names]
    before = ["import ml_dtypes\n"] * ("ml_dtypes" in needed)
    after = ["import numpy as np\n"] * bool(definitions)
    return "".join([*own, *["\n"] * bool(own), *before, head, *after])


def definition(buffer: Buffer, name: str) -> Iterator[str]:
    """The lines that make the array."""
    buffer = _carried(buffer)
    dtype = f"{'ml_dtypes' if _is_extended(buffer.dtype) else 'np'}.{buffer.dtype}"
    numbers = as_numbers(buffer)
    if numbers is not None:
        nested = np.array(numbers).reshape(buffer.shape).tolist()
        yield f"{name} = np.array({_shown(nested)}, {dtype})"
        return
    way, lines = as_text(buffer.content or b"")
    opened, closed = "base64.b64decode", ""
    if way == "deflated":
        opened, closed = "zlib.decompress(base64.b64decode", ")"
    yield f'{name} = np.frombuffer({opened}("""'
    yield from lines
    yield f'"""){closed}, {dtype}).reshape({", ".join(map(str, buffer.shape))})'


def _carried(buffer: Buffer) -> Buffer:
    return replace(buffer, dtype=carrier_of(buffer.dtype))


def _is_extended(dtype: DType) -> bool:
    """Whether NumPy has the dtype from ml_dtypes."""
    return not hasattr(np, str(dtype))


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    return repr(value) if isfinite(value) else f"{'-' * (value < 0)}np.{abs(value)}"
