"""A NumPy function and the specs of its arguments → a graph."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from neuroncore.errors import KernelError, Place
from nkigen_lite.frontend.arrays.arguments import numpy_argument_errors
from nkigen_lite.frontend.arrays.array import TracedArray
from nkigen_lite.frontend.arrays.memory import Memory
from nkigen_lite.frontend.arrays.promotion import traced
from nkigen_lite.frontend.arrays.tape import Tape
from nkigen_lite.frontend.indexing.masked_selection import Picked
from nkigen_lite.ir import Graph
from nkigen_lite.tensors.errors import SpecError, TraceError
from nkigen_lite.tensors.spec import as_spec, numpy_dtype
from nkigen_lite.tensors.strides import contiguous

_TAKEN = re.compile(r"[vx]\d+")
"""Names of values of graphs."""


def trace(function: Callable[..., Any], *specs: Any, keeps_names: bool = False) -> Graph:
    """The graph of `function` on arrays of these specs (`Spec`, "f32[128, 512]", or arrays).

    The function is called once, with arrays that have shapes and dtypes but no values; everything
    that it does to them through NumPy is recorded. Arguments are taken as C-contiguous. Values are
    NumPy's, 64-bit ones as 32-bit (`nkigen_lite.narrow`); 64-bit integers in between hold 32 bits.
    Inputs are x0, x1, …; with `keeps_names` what the function calls them.

    Raises TraceError and its kin, at the user's line, for what cannot be recorded.

    >>> print(trace(lambda x: x * 2, "f32[4]"))
    def function(x0: float32[4]):
        v0 = constant(2.0, float32[()])  # float32[()]
        v1 = multiply(x0, v0)  # float32[4]
        return v1
    <BLANKLINE>
    """
    name = getattr(function, "__name__", "")
    tape = Tape(name if name.isidentifier() else "function")
    place = _definition(function)
    _check_arguments(function, specs, place)
    names = _names(function, len(specs)) if keeps_names else [None] * len(specs)
    arguments = [_argument(tape, *pair) for pair in zip(specs, names, strict=True)]
    with numpy_argument_errors():
        result = function(*arguments)
    if tape.errors:
        raise tape.errors[0]
    writes = tuple(
        (value.name, a.memory.value)
        for value, a in zip(tape.build.inputs, arguments, strict=True)
        if a.memory.value != value.name
    )
    outputs = () if result is None and writes else _outputs(tape, result, place)
    return tape.build.finish(outputs, writes)


def _names(function: Callable[..., Any], count: int) -> list[str | None]:
    """The first parameters, as far as they have names that are not a graph's own."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        return [None] * count
    names = [None if p.kind is p.VAR_POSITIONAL or _TAKEN.fullmatch(p.name) else p.name
             for p in parameters][:count]  # fmt: skip
    return [*names, *[None] * (count - len(names))]


def _argument(tape: Tape, given: Any, name: str | None) -> TracedArray:
    spec = as_spec(given)
    memory = Memory(tape.build.input(spec, name))
    return TracedArray(tape, memory, (), spec, numpy_dtype(spec.dtype), contiguous(spec.shape))


def _check_arguments(function: Callable[..., Any], specs: Any, place: Place | None) -> None:
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return
    try:
        signature.bind(*specs)
    except TypeError as wrong:
        raise SpecError(
            f"{function.__name__}: {wrong}", expected=f"specs for {signature}",
            got=f"{len(specs)} specs", place=place,
        ) from None  # fmt: skip


def _outputs(tape: Tape, result: Any, place: Place | None) -> tuple[str, ...]:
    results = result if isinstance(result, (tuple, list)) else (result,)
    if not results or any(r is None or isinstance(r, dict) for r in results):
        raise TraceError(
            "the function returns no arrays", expected="an array or a tuple of arrays",
            got=type(result).__name__, place=place,
        )  # fmt: skip
    for picked in results:
        if isinstance(picked, Picked):
            raise picked.error
    try:
        return tuple(traced(tape, r).value for r in map(_flat, results))
    except KernelError as error:
        error.place = place  # the function's: the call is not the user's
        raise


def _flat(result: Any) -> Any:
    """The result, which is not a tuple of arrays itself."""
    if isinstance(result, (tuple, list)) and any(_has_arrays(r) for r in result):
        raise TraceError(
            "the function returns tuples in a tuple", expected="one flat tuple of arrays",
            got=f"a {type(result).__name__} of {len(result)} among the results",
            hint="return (*pair, x), or np.stack of arrays of one shape",
        )  # fmt: skip
    return result


def _has_arrays(given: Any) -> bool:
    if isinstance(given, (tuple, list)):
        return any(map(_has_arrays, given))
    return isinstance(given, TracedArray)


def _definition(function: Callable[..., Any]) -> Place | None:
    code = getattr(function, "__code__", None)
    return Place(code.co_filename, code.co_firstlineno) if code else None
