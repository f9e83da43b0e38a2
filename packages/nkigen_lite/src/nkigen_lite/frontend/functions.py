"""NumPy's functions and methods: which are translated, and with which arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from nkigen_lite.errors import (
    ArgumentError,
    UnsupportedFunctionError,
    UnsupportedKeywordError,
    ValueRangeError,
)
from nkigen_lite.frontend import (
    along,
    arranging,
    contracting,
    copying,
    decimals,
    joining,
    numbers,
    reduction_options,
    scanning,
    statistics,
    views,
)
from nkigen_lite.frontend.array import TracedArray
from nkigen_lite.frontend.calls import bound
from nkigen_lite.frontend.names import nearest
from nkigen_lite.frontend.products import dot
from nkigen_lite.frontend.ufuncs import OPERATORS, UFUNCS

Function = Callable[..., Any]


def _transpose(a: TracedArray, axes: Any = None) -> TracedArray:
    return views.transposed(a, axes)


def _swapaxes(a: TracedArray, axis1: Any, axis2: Any) -> TracedArray:
    order = list(range(a.ndim))
    first, second = views.axis_of(axis1, a.ndim), views.axis_of(axis2, a.ndim)
    order[first], order[second] = order[second], order[first]
    return views.transposed(a, order)


def _moveaxis(a: TracedArray, source: Any, destination: Any) -> TracedArray:
    pairs = [s if isinstance(s, (tuple, list)) else (s,) for s in (source, destination)]
    if len(pairs[0]) != len(pairs[1]):
        raise ArgumentError("source and destination have different lengths")
    froms, tos = ([views.axis_of(x, a.ndim) for x in p] for p in pairs)
    order = [d for d in range(a.ndim) if d not in froms]
    for to, origin in sorted(zip(tos, froms, strict=True)):
        order.insert(to, origin)
    return views.transposed(a, order)


def _squeeze(a: TracedArray, axis: Any = None) -> TracedArray:
    ones = [d for d, n in enumerate(a.shape) if n == 1]
    axes = ones if axis is None else views.axes_of(axis, a.ndim)
    if any(a.shape[d] != 1 for d in axes):
        raise views.ValueRangeError(
            "cannot select an axis to squeeze out which has size not equal to one", got=str(a.shape)
        )
    return views.reshape(a, tuple(n for d, n in enumerate(a.shape) if d not in axes))


def _expand_dims(a: TracedArray, axis: Any) -> TracedArray:
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = views.axes_of(tuple(given), a.ndim + len(given))
    rest = iter(a.shape)
    return views.reshape(
        a, tuple(1 if d in axes else next(rest) for d in range(a.ndim + len(axes)))
    )


def _flip(m: TracedArray, axis: Any = None) -> TracedArray:
    axes = views.axes_of(tuple(axis) if isinstance(axis, list) else axis, m.ndim)
    return m[tuple(slice(None, None, -1 if d in axes else 1) for d in range(m.ndim))]


def _dot(a: Any, b: Any) -> Any:
    tape = joining.tape_of(a, b)
    return dot(tape, *(joining.operand(x) for x in (a, b)))


def _shape(a: Any) -> tuple[int, ...]:
    return a.shape


def _ndim(a: Any) -> int:
    return a.ndim


def _size(a: Any, axis: Any = None) -> int:
    return a.size if axis is None else a.shape[views.axis_of(axis, a.ndim)]


def _result_type(*given: Any) -> np.dtype:
    return np.result_type(*(x.dtype if isinstance(x, TracedArray) else x for x in given))


NAMES: dict[str, Function] = {
    **reduction_options.NAMES,
    "where": joining.where,
    "clip": joining.clip,
    "concatenate": joining.concatenate,
    "stack": joining.stack,
    "split": joining.split,
    "tril": joining.tril,
    "triu": joining.triu,
    "full_like": joining.full_like,
    "zeros_like": joining.zeros_like,
    "ones_like": joining.ones_like,
    "empty_like": joining.empty_like,
    "dot": _dot,
    "transpose": _transpose,
    "swapaxes": _swapaxes,
    "moveaxis": _moveaxis,
    "squeeze": _squeeze,
    "expand_dims": _expand_dims,
    "broadcast_to": views.broadcast_to,
    "flip": _flip,
    "round": decimals.rounded,
    "around": decimals.rounded,
    "shape": _shape,
    "ndim": _ndim,
    "size": _size,
    "result_type": _result_type,
    **along.NAMES,
    **arranging.NAMES,
    **contracting.NAMES,
    **copying.NAMES,
    **scanning.NAMES,
    **statistics.NAMES,
}
"""NumPy's name → the same of traced arrays, written with the operations of the graph."""


def _functions() -> dict[Function, Function]:
    """Those that this NumPy has."""
    found = {}
    for name, ours in NAMES.items():
        module, _, last = name.rpartition(".")
        theirs = getattr(getattr(np, module) if module else np, last, None)
        if theirs is not None:
            found[theirs] = ours
    return found


FUNCTIONS = _functions()


def translated() -> frozenset[str]:
    """Every name of NumPy's that is translated, universal functions included."""
    return frozenset(NAMES) | {u.__name__ for u in UFUNCS}


def _name_of(function: Function) -> str:
    module = function.__module__.removeprefix("numpy").lstrip(".")
    return f"linalg.{function.__name__}" if module.startswith("linalg") else function.__name__


# Arguments that change nothing when they are given like this. Never order=, copy=, casting=, mode=.
_HARMLESS: dict[str, tuple[Any, ...]] = {
    "out": (None,), "subok": (False, True),
    "where": (True, np._NoValue), "initial": (np._NoValue,), "keepdims": (np._NoValue,),
    "device": (None, "cpu"), "mean": (np._NoValue,),
    "correction": (np._NoValue,), "min": (np._NoValue,), "max": (np._NoValue,),
    "a_min": (np._NoValue,), "a_max": (np._NoValue,),
    "optimize": (False, True, "greedy", "optimal"),
}  # fmt: skip


def call_function(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`__array_function__` of traced arrays."""
    name = _name_of(function)
    if function not in FUNCTIONS:
        raise UnsupportedFunctionError(f"np.{name} is not translated", hint=nearest(name))
    theirs = inspect.signature(function)
    result = called(FUNCTIONS[function], f"np.{name}", theirs, args, kwargs)
    return numbers.as_numpy_has_it(name, theirs.bind(*args, **kwargs).arguments, result)


def called(
    ours: Function, name: str, theirs: inspect.Signature, args: Any, kwargs: dict[str, Any]
) -> Any:
    """Our function with NumPy's arguments. An argument that it does not take is refused."""
    try:
        given = theirs.bind(*args, **kwargs).arguments
    except TypeError as refused:
        raise ArgumentError(f"{name}: {refused}") from None
    takes = _parameters(ours)
    plain, keywords = [], {}
    for parameter, value in given.items():
        if _is_harmless(parameter, value, ours):
            continue
        kind = theirs.parameters[parameter].kind
        if kind is kind.VAR_POSITIONAL:
            plain += value
        elif kind is kind.VAR_KEYWORD:
            keywords |= value
        else:
            keywords[parameter] = value
    for wrong in keywords.keys() - takes:
        raise UnsupportedKeywordError(f"{name}: {wrong}= is not translated", operand=wrong)
    return ours(*plain, **keywords)


def _is_harmless(parameter: str, value: Any, ours: Function) -> bool:
    if parameter not in _HARMLESS:
        return False
    return any(value is h or (isinstance(h, str) and value == h) for h in _HARMLESS[parameter])


@cache
def _parameters(function: Function) -> frozenset[str]:
    return frozenset(inspect.signature(function).parameters)


# ------------------------------------------------------------------------ methods


def _fill(self: TracedArray, value: Any) -> None:
    if np.ndim(value):
        error = ArgumentError if isinstance(value, (list, tuple)) else ValueRangeError
        raise error("setting an array element with a sequence", operand="value")
    self[...] = value


def _method_reshape(
    self: TracedArray, *shape: Any, order: Any = "C", copy: Any = None
) -> TracedArray:
    return copying.reshaped_as(self, shape[0] if len(shape) == 1 else shape, order, copy)


def _method_transpose(self: TracedArray, *axes: Any) -> TracedArray:
    one = axes[0] if len(axes) == 1 else axes or None
    return views.transposed(self, one)


def _of_function(function: Function) -> Function:
    """The method of the same meaning."""

    def method(self: TracedArray, *args: Any, **kwargs: Any) -> Any:
        return call_function(function, (self, *args), kwargs)

    return method


def _of(ours: Function, name: str, positions: tuple[str, ...] = ()) -> Function:
    """The method; `positions` are NumPy's names where they are more than ours."""

    def method(self: TracedArray, *args: Any, **kwargs: Any) -> Any:
        if len(args) <= len(positions):
            kwargs |= dict(zip(positions, args, strict=False))
            args = ()
        for keyword in [k for k, v in kwargs.items() if _is_harmless(k, v, ours)]:
            if keyword not in _parameters(ours):
                del kwargs[keyword]
        for keyword in kwargs:
            if keyword not in _parameters(ours):
                raise UnsupportedKeywordError(
                    f"ndarray.{name}: {keyword}= is not translated", operand=keyword
                )
        bound(f"ndarray.{name}", ours, (self, *args), kwargs)
        return numbers.like(self, ours(self, *args, **kwargs))

    return method


def _conjugate(self: TracedArray) -> Any:
    """The array itself, of NumPy's own numbers; of others a result of np.conjugate."""
    return self if self.dtype.num < _FIRST_OF_OTHERS else np.conjugate(self)


_FIRST_OF_OTHERS = 256  # NPY_USERDEF of numpy/ndarraytypes.h: bfloat16, float8_e4m3fn, ...


def _matrix_transpose(self: TracedArray) -> TracedArray:
    if self.ndim < 2:
        raise views.ValueRangeError("matrix transpose with ndim < 2 is undefined")
    return _swapaxes(self, -1, -2)


_METHODS: dict[str, Function | property] = {
    **{
        f.__name__: _of_function(f)
        for f in (
            np.sum, np.prod, np.mean, np.var, np.std, np.max, np.min, np.any, np.all, np.argmax,
            np.argmin, np.clip, np.dot, np.swapaxes, np.squeeze, np.ravel, np.round, np.cumsum,
            np.cumprod, np.repeat, np.take, np.diagonal, np.trace,
        )
    },
    "astype": _of(copying.converted, "astype", ("dtype", "order", "casting", "subok", "copy")),
    **{name: _of(_conjugate, name) for name in ("conj", "conjugate")},
    "copy": _of(copying.method_copied, "copy"),
    "flatten": _of(copying.flattened, "flatten"),
    "fill": _of(_fill, "fill"),
    "reshape": _of(_method_reshape, "reshape"),
    "transpose": _of(_method_transpose, "transpose"),
    "T": property(lambda self: numbers.like(self, views.transposed(self))),
    "mT": property(_matrix_transpose),
    **OPERATORS,
}  # fmt: skip

for _name, _method in _METHODS.items():
    setattr(TracedArray, _name, _method)
