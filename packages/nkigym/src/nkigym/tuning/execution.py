"""Kernels executed on inputs whose products and sums are exact, and compared to the bit."""

from __future__ import annotations

import re
import runpy
from collections.abc import Sequence
from pathlib import Path
from tempfile import gettempdir
from typing import Literal

import numpy as np

from neuroncore.commands.folders import new_folder, remove_abandoned
from neuroncore.options import Options
from neuroncore.program import Program, execute_program
from nkigym.tuning.input_ranges import integers


def in_domain(program: Program, seed: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Inputs and what the program gives for them: positive numbers where others have no value,
    as a root, a logarithm or a quotient may.
    """
    inputs = integers(program, seed)
    with np.errstate(all="ignore"):
        found = run_program(program, inputs)
        if any(is_nan(array).any() for array in found):
            inputs = integers(program, seed, 1)
            found = run_program(program, inputs)
    return inputs, found


_KERNEL = re.compile(r"^@nki\.jit\ndef (\w+)", re.MULTILINE)

TEMPORARY = "nkigym-"
"""Folders of runs and of their kernels begin with it."""
Begins = Literal["nan", "zero"]
"""Memory that nothing has written; integers have a number of the machine's for "nan"."""


def run_source(
    source: str, program: Program, inputs: Sequence[np.ndarray], begins: Begins = "nan"
) -> list[np.ndarray]:
    """The outputs of the program's source: its results, then its arguments."""
    import nki_runtime

    remove_abandoned(Path(gettempdir()), f"{TEMPORARY}*")
    with (
        new_folder(TEMPORARY) as folder,
        nki_runtime.use(
            nki=program.nki,
            target=program.target,
            shadow=True,
            uninitialized=begins,
            product_sums="float64",
        ),
    ):
        file = folder / "kernel.py"
        file.write_text(source, "utf-8")
        (name,) = _KERNEL.findall(source)  # another than the program's where the source needs that
        kernel = runpy.run_path(str(file))[name]
        arguments = [array.copy() for array in inputs]
        found = kernel(*arguments)
    results = found if isinstance(found, tuple) else [found] if program.results else []
    return [*results, *arguments]


def run_program(program: Program, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of the program, without a language: its results, then its arguments."""
    arguments = [array.copy() for array in inputs]
    results = execute_program(program, arguments, options=Options(product_sums="float64"))
    return [*(results or ()), *arguments]


def hides_unwritten(outputs: Sequence[np.ndarray]) -> bool:
    """Whether memory that nothing has written, where it begins as "nan", could contain an element
    as well: then a run in which it begins as "zero" is needed to tell.
    """
    return any(array.dtype.kind in "iub" or is_nan(array).any() for array in outputs)


def difference(
    given: Sequence[np.ndarray], expected: Sequence[np.ndarray], arguments: Sequence[str] = ()
) -> str | None:
    """Where outputs differ, to the bit, all of them compared; None where they do not. The last of
    them are `arguments`, by name.

    One NaN is as good as another: its sign and payload follow the order of operands.
    """
    if len(given) != len(expected):
        return f"{len(given)} outputs, not {len(expected)}"
    results = [f"output {number}" for number in range(len(expected) - len(arguments))]
    names = [*results, *(f"argument {name}" for name in arguments)]
    for name, one, other in zip(names, given, expected, strict=True):
        if one.shape != other.shape or one.dtype != other.dtype:
            return f"{name} is {one.dtype}{one.shape}, not {other.dtype}{other.shape}"
        differs = (_bits(one) != _bits(other)) & ~(is_nan(one) & is_nan(other))
        if differs.any():
            at = tuple(int(n) for n in np.argwhere(differs)[0])
            return (
                f"{name} differs in {int(differs.sum()):,} of {differs.size:,} elements, "
                f"first at {list(at)}: {one[at]}, not {other[at]}"
            )
    return None


def _bits(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def is_nan(array: np.ndarray) -> np.ndarray:
    """Where elements of any dtype have no value."""
    whole = array.dtype.kind in "iub"
    return np.zeros(array.shape, np.bool_) if whole else np.isnan(array.astype(np.float32))
