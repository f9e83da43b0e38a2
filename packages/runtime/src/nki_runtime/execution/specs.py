"""Specs among the arguments of a kernel: shape and dtype of an array without its values."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neuroncore.errors import KernelError, LaunchError
from neuroncore.spec import as_dtype

EXPECTED = "a (shape, dtype) pair, or an object with .shape and .dtype"


@dataclass(slots=True)
class Zeros:
    """Makes arrays of zeros of specs; `found` says whether there was one."""

    found: bool = False
    argument: str = ""
    """The parameter whose value is read, for errors."""

    def given(self, named: dict[str, Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Positional arguments and those by name, with arrays for specs.

        `named`: the same values by parameter (see `by_parameter`). Raises as `to_arrays`.
        """
        names = list(named)
        positional = [self._of(n, a) for n, a in zip(names, args, strict=False)]
        return tuple(positional), {name: self._of(name, a) for name, a in kwargs.items()}

    def _of(self, name: str, value: Any) -> Any:
        self.argument = name
        return self.to_arrays(value)

    def to_arrays(self, value: Any) -> Any:
        """`value` with an array for every spec, also inside tuples, lists and dicts.

        Raises LaunchError for a spec of a shape or dtype that no tensor has.
        """
        if isinstance(value, (np.ndarray, np.generic)):
            return value
        if _names_a_dtype(value):
            if len(value) != 2:
                raise self._wrong(f"{len(value)} parts", EXPECTED, value)
            return self._zeros(value[0], value[1], value)
        if type(value) in (list, tuple):
            return type(value)(map(self.to_arrays, value))
        if type(value) is dict:
            return {key: self.to_arrays(item) for key, item in value.items()}
        if hasattr(value, "shape") and hasattr(value, "dtype"):
            return self._zeros(value.shape, value.dtype, value)
        return value

    def _zeros(self, shape: Any, dtype: Any, spec: Any) -> np.ndarray:
        self.found = True
        sizes = _sizes(shape)
        if sizes is None:
            raise self._wrong(f"shape {shape!r}", "positive ints", spec)
        try:
            storage = as_dtype(dtype).storage
        except KernelError as unknown:
            raise self._wrong(unknown.what, unknown.expected or EXPECTED, spec) from None
        try:
            return np.zeros(sizes, storage)
        except (MemoryError, ValueError) as wrong:
            holds = "a shape that this computer's memory holds"
            raise self._wrong(f"shape {shape!r}, which no array has", holds, spec) from wrong

    def _wrong(self, what: str, expected: str, spec: Any) -> LaunchError:
        return LaunchError(
            f"argument {self.argument} is a spec of {what}", expected=expected, got=_shown(spec)
        )

    def copied(self, value: Any) -> Any:
        """`value` with copies of its arrays."""
        if isinstance(value, np.ndarray):
            copy = value.copy()
            copy.flags.writeable = value.flags.writeable
            return copy
        if type(value) in (list, tuple):
            return type(value)(map(self.copied, value))
        if type(value) is dict:
            return {key: self.copied(item) for key, item in value.items()}
        return value


def _names_a_dtype(value: Any) -> bool:
    """Whether it begins as (shape, dtype): ints first, then neither a number nor a container.

    Other numbers, or None, make a shape only beside a dtype that exists.
    """
    if type(value) is not tuple or len(value) < 2 or type(value[0]) not in (tuple, list):
        return False
    if isinstance(value[1], (int, float, tuple, list, dict, np.ndarray)) or value[1] is None:
        return False
    if all(isinstance(n, (int, np.integer)) for n in value[0]):
        return True
    odd = all(n is None or isinstance(n, (int, float, np.number)) for n in value[0])
    return odd and len(value) == 2 and _is_dtype(value[1])


def _is_dtype(value: Any) -> bool:
    try:
        as_dtype(value)
    except KernelError:
        return False
    return True


def _sizes(shape: Any) -> tuple[int, ...] | None:
    """The shape as ints, if it is one."""
    try:
        sizes = tuple(shape)
    except TypeError:
        return None
    return sizes if all(isinstance(n, (int, np.integer)) and n > 0 for n in sizes) else None


def _shown(value: Any) -> str:
    return repr(value)[:80]


def by_parameter(
    kernel: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """The arguments by the kernel's parameters, or by number where it does not take them."""
    try:
        names = list(inspect.signature(kernel).parameters)
        inspect.signature(kernel).bind(*args, **kwargs)
    except (TypeError, ValueError):
        names = []
    names += [str(number) for number in range(len(names), len(args))]
    return {**dict(zip(names, args, strict=False)), **kwargs}


def no_tensor(wrong: Exception, named: dict[str, Any]) -> LaunchError | None:
    """What Python says where a kernel uses as a tensor what is none, as an error of the argument.

    None where the value is not one of the arguments.
    """
    if isinstance(wrong, AttributeError):
        came = (type(wrong.obj), repr(wrong.obj))  # containers reach the kernel as copies
        same = [n for n, v in named.items() if wrong.name and (type(v), repr(v)) == came]
    else:
        said = _SUBSCRIPT.match(str(wrong))
        kind = said and (said[1] or said[2])
        same = [name for name, value in named.items() if type(value).__name__ == kind]
    if not same:
        return None
    return LaunchError(
        f"argument {same[0]} is used as a tensor by the kernel, and is none",
        expected=f"an array, {EXPECTED}",
        got=_shown(named[same[0]]),
        hint=f"Python says: {wrong}",
    )


_SUBSCRIPT = re.compile(r"'(\w+)' object is not subscriptable|(\w+) indices must be")
