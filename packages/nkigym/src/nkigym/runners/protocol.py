"""A runner measures candidates; every output of each is compared with a reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Protocol

import numpy as np

from neuroncore.program import Program, execute_program
from nki_dtypes import resolve
from nkigym.analysis.outputs import not_numbers
from nkigym.analysis.rounding import far, relative_rounding

SEED = 7


@dataclass(frozen=True, slots=True)
class Case:
    """A candidate, its arguments, what each output has to be; `key` names it in reports.

    `relative` is the rounding inside the reference, as `nkigym.analysis.rounding` bounds it.
    """

    key: str
    program: Program
    inputs: tuple[np.ndarray, ...]
    expected: tuple[np.ndarray, ...]
    predicted_ns: float
    relative: float


@dataclass(frozen=True, slots=True)
class Measurement:
    """The result of a runner for a case: "ok", or why not, with the log. Times are ns.

    `times_ns` has every repetition, outliers too.
    """

    key: str
    status: str
    what: str = ""
    log: str = ""
    p50_ns: float | None = None
    p99_ns: float | None = None
    times_ns: tuple[float, ...] = ()
    predicted_ns: float | None = None
    compile_s: float = 0.0
    is_cached: bool = False


class Runner(Protocol):
    """Measures cases; `watch` is called with each measurement as it comes."""

    @property
    def name(self) -> str: ...

    @property
    def hidden_s(self) -> float:
        """Seconds of compilation during which other work went on."""
        ...

    def measure(self, cases: Sequence[Case], watch: Callable[[Measurement], None]) -> None: ...


def case_of(key: str, root: Program, program: Program, predicted_ns: float) -> Case:
    """A case with seeded arguments; `root`, executed here, is the reference."""
    random = np.random.default_rng(SEED)
    inputs = tuple(_values(random, p.shape, p.dtype.storage) for p in root.parameters)
    outputs = execute_program(root, [array.copy() for array in inputs])
    return Case(
        key, program, inputs, tuple(map(np.asarray, outputs)), predicted_ns, relative_rounding(root)
    )


def _values(random: np.random.Generator, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    if np.issubdtype(dtype, np.integer):
        return random.integers(0, 8, shape).astype(dtype)
    return random.standard_normal(shape).astype(np.float32).astype(dtype)


def with_values(case: Case, found: Measurement, outputs: Sequence[Any]) -> Measurement:
    """The measurement, or what is wrong with the outputs."""
    wrong = wrong_output(case, outputs)
    return found if wrong is None else replace(found, status="wrong", what=wrong)


def wrong_output(case: Case, outputs: Sequence[Any]) -> str | None:
    """The first output that is missing, of another shape or format, or of other values."""
    if len(outputs) != len(case.expected):
        return f"{len(outputs)} outputs, expected {len(case.expected)}"
    for number, (got, want) in enumerate(zip(outputs, case.expected, strict=True)):
        try:
            array = viewed(np.asarray(got), want.dtype)
        except (ValueError, TypeError) as wrong:  # lists of several lengths
            return f"output {number} is not an array: {wrong}"
        if isinstance(got, np.ma.MaskedArray):
            return f"output {number} is {not_numbers(got)}, expected an array"
        if array.dtype != want.dtype or array.shape != want.shape:
            return (
                f"output {number} is {array.dtype.name}{list(array.shape)}, "
                f"expected {want.dtype.name}{list(want.shape)}"
            )
        wrong = far(array, want, case.relative, ulps=1)
        if wrong.any():
            at = list(map(int, np.argwhere(wrong)[0]))
            what = f"{int(wrong.sum()):,} of {wrong.size:,} elements, first at {at}"
            return f"output {number} differs in {what}"
    return None


def wrong_times(times_ns: Sequence[float], repetitions: int) -> str | None:
    """Repetitions without a time, or the first that cannot be times."""
    if len(times_ns) < max(1, repetitions):
        return f"the runtime reports {len(times_ns)} of {repetitions} times"
    wrong = [ns for ns in times_ns if not 0 < ns < inf]
    return f"the runtime reports the times {wrong[:3]} ns" if wrong else None


def viewed(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Bytes as the 8-bit float format that they are in: runtimes return int8 or an opaque type."""
    is_opaque = array.dtype in (np.int8, np.uint8) or array.dtype.kind == "V"
    is_fp8 = dtype.itemsize == 1 and resolve(dtype).name.startswith("float8")
    return array.view(dtype) if is_opaque and is_fp8 and array.dtype.itemsize == 1 else array
