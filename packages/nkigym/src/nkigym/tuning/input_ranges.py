"""Inputs of checks: integers, and ranges around the constants of a function.

A program that lacks a limit, a threshold or a small summand of its function differs only beyond,
beside or below that constant. "fractional" inputs are up to 4, constants and their neighbours
among them; "large" ones have all magnitudes from 1 to beyond the largest constant; "small" ones
are as small as the least constant. Sums, means and maxima of so many random numbers hardly differ:
each row, or each column, of "row-scaled" and "column-scaled" inputs has a magnitude and a mean of
its own, which straddle the constants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import isfinite, prod
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from neuroncore.program import Buffer, Program, calls
from nki_dtypes import DType, finfo

LARGEST = 4
"""Inputs are integers from -LARGEST to LARGEST: products and sums of many are exact in float32."""
PARTS, FINE = 8, 1 << 12
"""Fractional inputs are whole, multiples of 1 / PARTS, which tie, and of 1 / FINE, which narrow
floats round.
"""
LARGE, SMALL = 2.0**14, 2.0**-10
"""Magnitudes of large and small inputs at least."""
LEAST = 2.0**-40
"""Small inputs are not below it: their squares and cubes are floats."""
BESIDE = 1 / 16
"""How far the neighbours of a constant are, relative to it."""
MOST_INTEGER = 1 << 11
"""Large integers are at most so many, whose products are exact in float32."""
NEAR = 1 / 4
"""The same of the magnitudes of rows and columns."""
MEAN = 15 / 16
"""Of a part of the rows and columns, relative to their magnitude."""
STRADDLED = 1 / 4
"""The share of elements that are constants or beside one."""

PERIOD = 65_521
"""A prime: inputs repeat after so many elements, in other columns."""


def integers(program: Program, seed: int, least: int = -LARGEST) -> list[np.ndarray]:
    """An array of integers for each parameter, which its format represents exactly."""
    random = np.random.default_rng(seed)
    return [
        random.integers(least, LARGEST + 1, buffer.shape).astype(buffer.dtype.storage)
        for buffer in program.parameters
    ]


Maker = Callable[[np.random.Generator, DType, tuple[int, ...]], np.ndarray]
"""Numbers for a parameter of such a dtype and shape."""


@dataclass(frozen=True, slots=True)
class InputRange:
    """How to make an array for each parameter."""

    name: str
    make: Maker

    def arrays(self, program: Program, seed: int, is_positive: bool) -> list[np.ndarray]:
        """Inputs of the dtypes of the program's parameters; with is_positive, above zero alone."""
        random = np.random.default_rng(seed)
        return [self._array(random, b, is_positive) for b in program.parameters]

    def _array(self, random: np.random.Generator, buffer: Buffer, is_positive: bool) -> np.ndarray:
        made = self.make(random, buffer.dtype, buffer.shape)
        if is_positive:
            made = np.abs(np.where(made == 0, np.max(np.abs(made), initial=0.0), made))
        elif buffer.dtype.storage.kind in "ub":
            made = np.abs(made)
        return np.resize(made.astype(buffer.dtype.storage), buffer.shape)


def input_ranges(constants: Sequence[float]) -> tuple[InputRange, ...]:
    """Ranges whose inputs straddle positive constants and their opposites."""
    near = [n for n in constants if n <= LARGEST]
    beyond = [n for n in constants if n > LARGEST]
    most = max(LARGE, 4 * max(beyond, default=0.0))
    least = max(LEAST, min(SMALL, *near)) if near else SMALL

    def fractional(random: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
        number = min(prod(shape), PERIOD)
        if _is_whole(dtype):
            return random.integers(-LARGEST, LARGEST + 1, number).astype(np.float64)
        parts = random.choice([1, 1, PARTS, FINE], number)
        made = np.rint(random.uniform(-LARGEST, LARGEST, number) * parts) / parts
        return _straddling(random, made, near)

    def large(random: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
        number, top = min(prod(shape), PERIOD), _top(dtype, most)
        made = np.exp(random.uniform(0, np.log(top), number)) * random.choice([-1, 1], number)
        straddling = _straddling(random, made, [n for n in beyond if n <= top])
        return np.rint(straddling) if _is_whole(dtype) else straddling

    def small(random: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
        if _is_whole(dtype):
            return fractional(random, dtype, shape)
        scale = max(least, PARTS * finfo(dtype).tiny)
        return random.uniform(-LARGEST, LARGEST, min(prod(shape), PERIOD)) * scale

    def rows(random: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
        return _scaled(random, dtype, shape, (*shape[:-1], 1), constants, most)

    def columns(random: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
        return _scaled(random, dtype, shape, shape[-1:], constants, most)

    makers = {
        "fractional": fractional, "large": large, "small": small,
        "row-scaled": rows, "column-scaled": columns,
    }  # fmt: skip
    return tuple(InputRange(name, make) for name, make in makers.items())


def _is_whole(dtype: DType) -> bool:
    return dtype.storage.kind in "iub"


def _top(dtype: DType, most: float) -> float:
    """Of large inputs of a dtype."""
    return min(most, MOST_INTEGER if _is_whole(dtype) else finfo(dtype).max / 4)


def _scaled(
    random: np.random.Generator, dtype: DType, shape: tuple[int, ...], parts: tuple[int, ...],
    constants: Sequence[float], most: float,
) -> np.ndarray:  # fmt: skip
    """Each part's elements are up to a magnitude of its own; their mean is near to it, or to its
    opposite, or to zero.
    """
    top = _top(dtype, most)
    magnitudes = np.exp(random.uniform(np.log(min(SMALL, top)), np.log(top), parts))
    straddled = [n for n in constants if n <= top / 2]
    if straddled:
        beside = random.choice(straddled, parts) * random.uniform(1 - NEAR, 1 + NEAR, parts)
        magnitudes = np.where(random.random(parts) < 1 / 2, beside, magnitudes)
    means = random.choice([0, 0, MEAN, -MEAN], parts)
    spread = random.uniform(-1, 1, min(prod(shape), PERIOD)).astype(np.float32)
    made = magnitudes.astype(np.float32) * (means + (1 - abs(means)) * np.resize(spread, shape))
    return np.rint(made) if _is_whole(dtype) else made


def _straddling(
    random: np.random.Generator, made: np.ndarray, constants: Sequence[float]
) -> np.ndarray:
    """The array, a part of which is replaced by constants and what is beside them."""
    if not constants:
        return made
    values = np.array([*_beside(constants)])
    is_replaced = random.random(made.shape) < STRADDLED
    return np.where(is_replaced, random.choice(values, made.shape), made)


def _beside(constants: Sequence[float]) -> Iterator[float]:
    for n in constants:
        for value in (n, n * (1 - BESIDE), n * (1 + BESIDE)):
            yield from (value, -value)


# -- constants -------------------------------------------------------------------------------------

SMALL_ARRAY = 64
"""Elements up to which the numbers of an array are constants of the function that reads it."""


def constants_of(function: Callable[..., Any]) -> set[float]:
    """Numbers that a Python function may compute with: of its code, of the variables and functions
    that it reads, of its default arguments; of a partial function, of its arguments.
    """
    return _magnitudes(_numbers(function, set()))


def constants_of_program(program: Program) -> set[float]:
    """Numbers among the operands and attributes of its instructions."""
    values = (
        v for call in calls(program.body) for v in (*call.operands.values(), *call.attrs.values())
    )
    return _magnitudes(n for value in values for n in _values(value))


def _magnitudes(numbers: Iterable[float]) -> set[float]:
    return {abs(n) for n in numbers if isfinite(n)} - {0.0}


def _numbers(value: Any, seen: set[int]) -> Iterator[float]:
    """Of a value that a function reads; each function once."""
    if isinstance(value, partial):
        read = (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, FunctionType) and id(value) not in seen:
        seen.add(id(value))
        read = tuple(_read(value))
    else:
        yield from _values(value)
        return
    for each in read:
        yield from _numbers(each, seen)


def _read(function: FunctionType) -> Iterator[Any]:
    """The values that a function reads by name, and its constants."""
    yield from (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    yield from _enclosed(function)
    for code in _codes(function.__code__):
        yield from code.co_consts
        yield from _named(code, function.__globals__)


def _enclosed(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # assigned after the function that reads it was made
            yield cell.cell_contents


def _named(code: CodeType, variables: Mapping[str, Any]) -> Iterator[Any]:
    """Variables of a module, and of the modules among them."""
    found = [variables[name] for name in code.co_names if name in variables]
    yield from found
    for module in found:
        if isinstance(module, ModuleType) and module is not np:
            yield from (getattr(module, name, None) for name in code.co_names)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def _values(value: Any) -> Iterator[float]:
    """The numbers of a number, a small array or a collection of them."""
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        yield _as_float(value)
    elif isinstance(value, (tuple, list, frozenset)):
        for each in value:
            yield from _values(each)
    elif isinstance(value, np.ndarray) and value.size <= SMALL_ARRAY and value.dtype.kind in "iuf":
        yield from map(float, value.ravel())


def _as_float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:  # an integer beyond all floats
        return float("inf")
