"""NumPy functions executed in float64, in float32 and with random roundings of a given size.

What a kernel may return beside a rounded comparison or after a cancellation is what the function
returns for some roundings of its operations (D. S. Parker, "Monte Carlo Arithmetic", 1997). Arrays
of `Perturbed` round at random the operands and the result of every operation of NumPy that is not
exact, so that the results of several executions enclose the results of a correct kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from neuroncore.program import Program
from nki_dtypes import DType, finfo, float32
from nkigym.analysis.outputs import not_numbers
from nkigym.analysis.rounding import FLOAT32

EXACT = frozenset({
    "absolute", "ceil", "clip", "copysign", "equal", "fabs", "floor", "fmax", "fmin", "greater",
    "greater_equal", "isfinite", "isinf", "isnan", "less", "less_equal", "logical_and",
    "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "negative", "not_equal",
    "positive", "rint", "sign", "signbit", "trunc",
})  # fmt: skip
"""Operations of NumPy that do not round; their operands are rounded where they are computed."""
COMPILED = frozenset([np.dot, np.einsum, np.inner, np.outer, np.vdot])
"""Functions of NumPy that compute without calls of other ones."""

Reference = Callable[[Sequence[np.ndarray]], Sequence[Any]]
"""The results of a function's kernel for arrays, by NumPy."""

SEED = 7
SAMPLES = 24
"""An element beside a comparison crosses it in half of the executions."""
MORE_SAMPLES, FEW = 4 * SAMPLES, 1 / 64
"""Where rounding makes values random, as a sine of millions has, a few of many elements have a
rare one: so many executions while the share of elements that differ is at most FEW.
"""


class OutputError(TypeError):
    """An output of the function that cannot be compared."""


class Function(NamedTuple):
    """A function of inputs, and the program that is made from it."""

    reference: Reference
    root: Program
    formats: set[DType]
    """Narrow floats to which both round."""
    inputs: Sequence[np.ndarray]

    def exact(self) -> Sequence[Any]:
        """Results in float64. Raises OutputError."""
        results = self.reference(as_floats(self.inputs, np.float64))
        for number, output in enumerate(results):
            if what := not_numbers(output):
                raise OutputError(
                    f"output {number} of the function is {what}, not an array of numbers"
                )
        return results

    def single(self) -> Sequence[Any]:
        return self.reference(as_floats(self.inputs, np.float32))

    def rounded(self) -> Iterator[Sequence[Any]]:
        """Results for random roundings, again and again; none of a function that does not take
        such arrays. Narrow floats overflow in every second one, as a kernel may compute in float32.
        """
        narrow = roundings_of(self.root, self.formats)
        single = replace(narrow, most=finfo(float32).max)
        for number in range(MORE_SAMPLES):
            inputs = (narrow, single)[number % 2].arrays(as_floats(self.inputs, np.float64))
            try:
                yield self.reference(inputs)
            except Exception:  # of the function: it takes arrays of NumPy alone
                return


def roundings_of(root: Program, formats: set[DType]) -> Roundings:
    """Of the narrow formats to which a program and its function round."""
    narrow = [finfo(dtype) for dtype in formats]
    infos = [finfo(float32), *narrow]
    floats = {buffer.dtype for buffer in root.buffers().values() if buffer.dtype.is_float}
    return Roundings(
        np.random.default_rng(SEED),
        FLOAT32 + max((info.eps for info in narrow), default=0.0),
        max(info.tiny for info in infos),
        min(info.max for info in infos),
        max(infos, key=lambda info: info.eps).dtype.storage,
        tuple(dtype.storage for dtype in sorted(floats, key=str)),
    )


def as_floats(arrays: Sequence[np.ndarray], dtype: type) -> list[np.ndarray]:
    floats = (a.copy() if a.dtype.kind in "iub" else a.astype(dtype) for a in arrays)
    return [array.view(StableOrder) for array in floats]


class StableOrder(np.ndarray):
    """An array that is sorted as kernels sort: the indices of equal elements rise."""

    def argsort(
        self, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
    ) -> Any:
        return super().argsort(axis, "stable", order)


@dataclass(frozen=True, slots=True)
class Roundings:
    """Random roundings of a format of floats."""

    random: np.random.Generator
    relative: float
    """The largest relative error of a rounding."""
    least: float
    """The least normal number: results below it are rounded absolutely, or to zero."""
    most: float
    """The largest number: results above are infinite."""
    coarsest: np.dtype[Any]
    """A format to which half of the elements are rounded, unless they overflow there."""
    formats: tuple[np.dtype[Any], ...]
    """A constant is rounded to one of these, or exact."""
    dtypes: set[np.dtype[Any]] = field(default_factory=set)
    """Dtypes of all arrays that were computed."""

    def of(self, value: Any) -> Any:
        """The value with a random rounding of each element; integers are exact."""
        exact = np.asarray(value)
        if exact.dtype.kind not in "fV" or exact.dtype.names is not None:
            return value
        wide = exact.astype(np.float64)
        errors = self.random.uniform(-1, 1, wide.shape)
        rounded = wide * (1 + self.relative * errors) + self.least * errors * (wide != 0)
        nearest = wide.astype(self.coarsest).astype(np.float64)
        is_nearest = np.isfinite(nearest) & (self.random.random(wide.shape) < 1 / 2)
        rounded = np.where(is_nearest, nearest, rounded)
        rounded = np.where(np.abs(rounded) > self.most, np.copysign(np.inf, wide), rounded)
        return np.where(np.isnan(wide), wide, rounded).astype(exact.dtype)

    def constant(self, value: Any) -> Any:
        """A number of Python, maybe rounded; other values as they are."""
        if not isinstance(value, float):
            return value
        rounded = [value, *(float(np.asarray(value).astype(each)) for each in self.formats)]
        return rounded[self.random.integers(len(rounded))]

    def operands(self, values: Iterable[Any], are_exact: bool) -> list[Any]:
        """Of an operation: constants, and arrays that are rounded unless they are exact there."""
        plain = [self.constant(_plain(value)) for value in values]
        return plain if are_exact else [self.of(v) if _is_array(v) else v for v in plain]

    def results(self, found: Any, are_exact: bool) -> Any:
        """Of an operation: an array, several, or None of one that changes its operand."""
        if isinstance(found, tuple):
            return tuple(self.results(each, are_exact) for each in found)
        if found is None:
            return None
        return self.perturbed(found if are_exact else self.of(found))

    def arrays(self, arrays: Iterable[np.ndarray]) -> list[Perturbed]:
        """The arrays, whose elements are exact, for a function to compute with."""
        return [self.perturbed(array) for array in arrays]

    def perturbed(self, array: Any) -> Perturbed:
        """An array that rounds what is computed of it."""
        made = np.asarray(array).view(Perturbed)
        made.roundings = self
        self.dtypes.add(made.dtype)
        return made


class Perturbed(StableOrder):
    """An array whose operations round at random."""

    roundings: Roundings | None

    def __array_finalize__(self, made_from: Any) -> None:
        self.roundings = getattr(made_from, "roundings", None)
        if self.roundings is not None:
            self.roundings.dtypes.add(self.dtype)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any
    ) -> Any:
        roundings = _roundings((*inputs, *(out or ())))
        is_exact = ufunc.__name__ in EXACT
        operands = roundings.operands(inputs, are_exact=is_exact or method == "at")
        if out is None:
            return roundings.results(getattr(ufunc, method)(*operands, **options), is_exact)
        plain = tuple(map(_plain, out))
        getattr(ufunc, method)(*operands, out=plain, **options)
        for array in () if is_exact else plain:
            array[...] = roundings.of(array)
        return out if len(out) > 1 else out[0]

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        roundings = _roundings((self, *args))
        if func in COMPILED:
            args = tuple(roundings.of(_plain(each)) if _is_array(each) else each for each in args)
            return roundings.perturbed(roundings.of(func(*args, **kwargs)))
        found = super().__array_function__(func, types, args, kwargs)
        return roundings.perturbed(found) if isinstance(found, np.ndarray) else found


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Perturbed) else value


def _roundings(values: Iterable[Any]) -> Roundings:
    """Of the first array that has some."""
    return next(v.roundings for v in values if isinstance(v, Perturbed) and v.roundings is not None)
