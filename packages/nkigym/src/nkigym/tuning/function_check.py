"""The kernel to begin with against the NumPy function that it was made from.

NumPy executes the function in float64 on several ranges of inputs (`input_ranges`). An element is
right where one rounding of the output and the roundings of the program, relative to that element,
explain the difference. Where they do not, as beside a comparison or after a cancellation, the
function is executed with random roundings of its operations (`function_execution`) until their
results enclose the element, at most SAMPLES times, or MORE_SAMPLES where few elements remain. The
value that NumPy has in float32 is right as well. An output is decided where most of its elements
hardly depend on roundings in at least one range.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from neuroncore.program import Program
from nki_dtypes import DType
from nkigym.analysis.rounding import far, relative_rounding, rounded_dtypes
from nkigym.tuning.execution import is_nan, run_program
from nkigym.tuning.function_execution import (
    FEW,
    SAMPLES,
    SEED,
    Function,
    OutputError,
    Reference,
    as_floats,
    roundings_of,
)
from nkigym.tuning.input_ranges import (
    InputRange,
    constants_of,
    constants_of_program,
    input_ranges,
)

MARGIN = 4
"""A kernel rounds up to so many times as often as NumPy does in float32."""
ULPS = 3 / 2
WIDE = 1 / 4
"""The share of the largest element by which rounding changes one that is not decided."""
MANY = 1 << 20
"""Arguments' and results' elements up to which a program is executed for all ranges of inputs."""


class Verdict(NamedTuple):
    passed: bool | None
    """None where it could not be decided."""
    detail: str


class Small(NamedTuple):
    """The kernel of the function for small arguments, and its results."""

    program: Program
    reference: Reference


def compare_with_function(
    root: Program, reference: Reference, small: Callable[[], Small | None] = lambda: None
) -> Verdict:
    """Whether the program computes the function, which may not execute arrays of float64.

    small: its kernel that is executed instead for all ranges of inputs but the first, where the
    program has more than MANY elements.
    """
    with np.errstate(all="ignore"):
        return _compare(root, reference, small)


def _compare(root: Program, reference: Reference, small: Callable[[], Small | None]) -> Verdict:
    ranges = input_ranges(sorted(constants_of(reference) | constants_of_program(root)))
    try:
        formats = _formats(root, reference, ranges[0])
        compared = {ranges[0].name: _compared(root, reference, formats, ranges[0])}
    except OutputError as wrong:
        return Verdict(None, str(wrong))
    except Exception as wrong:  # it takes arrays of the generator, or none of float64
        return Verdict(None, f"NumPy cannot execute it: {wrong}")
    program, function = (_elements(root) > MANY and small()) or (root, reference)
    for inputs in ranges[1:]:
        with suppress(Exception):  # of the function: an index beyond its axis
            compared[inputs.name] = _compared(program, function, formats, inputs)
    if what := _difference(compared, len(root.results)):
        return Verdict(False, what)
    undecided = {*range(len(root.results))}.difference(
        *(each.decided for each in compared.values())
    )
    if undecided:
        return Verdict(None, f"roundings decide most elements of output {min(undecided)}")
    relative = relative_rounding(root, formats)
    detail = f"{len(root.results)} outputs of NumPy in float64 ({', '.join(compared)} inputs)"
    return Verdict(True, f"{detail}, to {relative:.0e} and one rounding")


def _difference(compared: Mapping[str, _Compared], num_outputs: int) -> str | None:
    """The first output that is not the function's, and for which range of inputs."""
    for name, found in compared.items():
        if found.num_outputs != num_outputs:
            return f"{num_outputs} outputs, {found.num_outputs} of the function"
        if found.wrong:
            return f"output {min(found.wrong)} is not that of the function for {name} inputs"
    return None


def _formats(root: Program, reference: Reference, inputs: InputRange) -> set[DType]:
    """Narrow floats in which the program rounds, as the function does: dtypes of its arguments, and
    of arrays that it computes of them.
    """
    rounded = rounded_dtypes(root)
    found = rounded & {buffer.dtype for buffer in root.parameters}
    if found != rounded:
        roundings = roundings_of(root, rounded)
        reference(roundings.arrays(as_floats(inputs.arrays(root, SEED, False), np.float64)))
        found |= {dtype for dtype in rounded if dtype.storage in roundings.dtypes}
    return found


def _elements(program: Program) -> int:
    """Of arguments and results."""
    buffers = program.buffers()
    results = (buffers[name] for name in program.results)
    return sum(buffer.size for buffer in (*program.parameters, *results))


class _Compared(NamedTuple):
    num_outputs: int
    """Of the function."""
    wrong: set[int]
    """Outputs with elements that no rounding explains."""
    decided: set[int]
    """Outputs most of whose elements hardly depend on roundings."""


def _compared(
    root: Program, reference: Reference, formats: set[DType], inputs: InputRange
) -> _Compared:
    """For inputs of a range; where some of the kernel's outputs have no value, then for positive
    ones.
    """
    num_outputs, wrong, decided = 0, set[int](), set[int]()
    for is_positive in (False, True):
        arrays = inputs.arrays(root, SEED, is_positive)
        found = run_program(root, arrays)
        function = Function(reference, root, formats, arrays)
        exact = function.exact()
        num_outputs = len(exact)
        outputs = _differing(function, found, exact)
        wrong |= {n for n, output in enumerate(outputs) if output.share}
        decided |= {n for n, output in enumerate(outputs) if output.is_decided}
        if wrong or not any(is_nan(array).any() for array in found):
            break
    return _Compared(num_outputs, wrong, decided)


def _differing(
    function: Function, found: Sequence[np.ndarray], exact: Sequence[Any]
) -> list[_Output]:
    """The outputs, with the elements of each that no rounding explains."""
    relative = relative_rounding(function.root, function.formats)
    outputs = [_Output(got, want, relative) for got, want in zip(found, exact, strict=False)]
    samples, taken = function.rounded(), 0
    while _differs(outputs, taken) and (values := next(samples, None)) is not None:
        for output, value in zip(outputs, values, strict=False):
            output.enclose(value)
        taken += 1
    if any(output.share for output in outputs):
        for output, value in zip(outputs, function.single(), strict=False):
            output.leave_out(value, equal_alone=taken > 0)
    return outputs


def _differs(outputs: Sequence[_Output], taken: int) -> bool:
    """Whether more samples than those taken could explain elements that differ."""
    most = max((output.share for output in outputs), default=0.0)
    return most > 0 and (taken < SAMPLES or most <= FEW)


class _Output:
    """An output of a kernel beside the function's: which of the elements that are far from the
    function's in float64 differ from its values for random roundings too.
    """

    def __init__(self, got: np.ndarray, want: Any, relative: float) -> None:
        exact = _as_output(want, got)
        self._relative, self._size = relative, got.size
        self._has_shape = got.shape == exact.shape
        is_far = np.ones(got.shape, np.bool_)
        if self._has_shape:
            is_far = far(got, exact, relative, ULPS, is_local=True)
        if self._has_shape and is_far.any():
            is_far &= ~(is_nan(exact) & is_nan(got).any())  # an operand has none: not compared
        self._at = np.flatnonzero(is_far)
        self._wide = WIDE * _largest(exact) if self._at.size else 0.0
        self._got = got.ravel()[self._at]
        self._exact = self._elements(want)
        self._least = self._most = self._exact
        self.differs = np.ones(self._at.shape, np.bool_)
        self._is_sensitive = np.zeros(self._at.shape, np.bool_)

    @property
    def share(self) -> float:
        """Of its elements that differ."""
        return float(self.differs.sum() / max(1, self._size))

    @property
    def is_decided(self) -> bool:
        """Whether roundings hardly change most of its elements."""
        return 2 * self._is_sensitive.sum() <= self._size

    def enclose(self, value: Any) -> None:
        """Leave out what is between the values of the function so far, this one among them; and
        what overflows there, or has no value.
        """
        values = self._elements(value)
        has_no_value = np.isfinite(self._exact) & ~np.isfinite(values)
        self._least, self._most = np.fmin(self._least, values), np.fmax(self._most, values)
        width = self._most - self._least
        reach = np.where(np.isfinite(width), width / 2, 0) * (self._got.dtype.kind not in "iub")
        got = self._got.astype(np.float64)
        near = np.clip(got, self._least - reach, self._most + reach)
        near = np.where(np.isnan(got), self._exact, near)
        self._is_sensitive |= has_no_value | ~(width <= self._wide)
        self.differs &= ~has_no_value & self._is_far(self._got, near, self._relative)

    def leave_out(self, single: Any, equal_alone: bool) -> None:
        """Leave out elements whose value NumPy does not have in float32 either. After random
        roundings those alone for which it has the kernel's: roundings are of whole operations of
        NumPy, and one such as a norm overflows inside.
        """
        values = self._elements(single).astype(self._got.dtype)
        is_far = self.differs & self._is_far(values, self._exact, self._relative / MARGIN)
        if equal_alone:
            is_far &= ~self._is_far(self._got, values, self._relative)
        self._is_sensitive |= is_far
        self.differs &= ~is_far

    def _is_far(self, got: np.ndarray, want: np.ndarray, relative: float) -> np.ndarray:
        return far(got, want, relative, ULPS, is_local=True)

    def _elements(self, value: Any) -> np.ndarray:
        """The elements of an output of the function that are far in float64."""
        exact = np.asarray(value)
        if not self._has_shape or exact.size != self._size:
            return np.full(self._at.shape, np.nan)
        return exact.ravel()[self._at].astype(np.float64)


def _largest(array: np.ndarray) -> float:
    exact = np.abs(array.astype(np.float64))
    return float(np.max(exact, initial=0.0, where=np.isfinite(exact)))


def _as_output(want: Any, got: np.ndarray) -> np.ndarray:
    """What NumPy returns; a number as an array of one element, as an array of a kernel has axes."""
    exact = np.asarray(want)
    return exact.reshape(got.shape) if exact.ndim == 0 and got.size == 1 else exact
