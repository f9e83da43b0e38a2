"""Kernels on integers: emitted source under the switch, programs on the machine."""

from __future__ import annotations

import runpy
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from neuroncore.program import Program, execute_program

LARGEST = 4
"""Inputs are integers from -LARGEST to LARGEST: products and sums of many are exact in float32."""


def integers(program: Program, seed: int, least: int = -LARGEST) -> list[np.ndarray]:
    """An array for each parameter, of integers that its format holds exactly."""
    random = np.random.default_rng(seed)
    return [
        random.integers(least, LARGEST + 1, buffer.shape).astype(buffer.dtype.storage)
        for buffer in program.parameters
    ]


def in_domain(program: Program, seed: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Inputs and what the program gives for them: positive integers where others have no value,
    as a root, a logarithm or a quotient may.
    """
    inputs = integers(program, seed)
    with np.errstate(all="ignore"):
        found = run_program(program, inputs)
        if any(_has_nan(array) for array in found):
            inputs = integers(program, seed, least=1)
            found = run_program(program, inputs)
    return inputs, found


def run_source(source: str, program: Program, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What the program's source gives; outputs begin as NaN, the machine's default."""
    import nki_runtime

    with (
        tempfile.TemporaryDirectory() as folder,
        nki_runtime.use(nki=program.nki, target=program.target),
    ):
        file = Path(folder) / "kernel.py"
        file.write_text(source, "utf-8")
        kernel = runpy.run_path(str(file))[program.name]
        found = kernel(*[array.copy() for array in inputs])
    return list(found) if isinstance(found, tuple) else [found]


def run_program(program: Program, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What the program gives, without a language."""
    return list(execute_program(program, [array.copy() for array in inputs]))


def difference(given: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> str | None:
    """Where outputs differ, to the bit, all of them compared; None where they do not."""
    if len(given) != len(wanted):
        return f"{len(given)} outputs, not {len(wanted)}"
    for number, (one, other) in enumerate(zip(given, wanted, strict=True)):
        if one.shape != other.shape or one.dtype != other.dtype:
            return f"output {number} is {one.dtype}{one.shape}, not {other.dtype}{other.shape}"
        differs = _bits(one) != _bits(other)
        if differs.any():
            at = tuple(int(n) for n in np.argwhere(differs)[0])
            return (
                f"output {number} differs in {int(differs.sum()):,} of {differs.size:,} elements, "
                f"first at {list(at)}: {one[at]}, not {other[at]}"
            )
        if _has_nan(one):
            return f"output {number} has elements that are NaN: nothing has written them"
    return None


def _has_nan(array: np.ndarray) -> bool:
    return array.dtype.kind not in "iub" and bool(np.isnan(array.astype(np.float32)).any())


def _bits(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
