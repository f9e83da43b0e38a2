"""NumPy's functions and methods: which are translated, and with which arguments."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from nkigen_lite.frontend.arrays import copies, scalars, views
from nkigen_lite.frontend.arrays.arguments import bound, called, is_default, parameters_of
from nkigen_lite.frontend.arrays.array import TracedArray, method
from nkigen_lite.frontend.arrays.operators import OPERATORS
from nkigen_lite.frontend.arrays.registry import FUNCTIONS, Function, suggestion
from nkigen_lite.frontend.functions.shapes import swapaxes
from nkigen_lite.frontend.functions.ufuncs import call_ufunc
from nkigen_lite.tensors.errors import (
    ArgumentError,
    UnsupportedFunctionError,
    UnsupportedKeywordError,
    ValueRangeError,
)


def _name_of(function: Function) -> str:
    module = function.__module__.removeprefix("numpy").lstrip(".")
    return f"linalg.{function.__name__}" if module.startswith("linalg") else function.__name__


@method("__array_function__")
def _array_function(
    _self: TracedArray, function: Function, _types: Any, args: Any, kwargs: Any
) -> Any:
    return call_function(function, args, kwargs)


def call_function(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """NumPy's function on arguments of which some are traced arrays."""
    name = _name_of(function)
    if function not in FUNCTIONS:
        raise UnsupportedFunctionError(f"np.{name} is not translated", hint=suggestion(name))
    theirs = inspect.signature(function)
    result = called(FUNCTIONS[function], f"np.{name}", theirs, args, kwargs)
    return scalars.as_numpy_has_it(name, theirs.bind(*args, **kwargs).arguments, result)


# ------------------------------------------------------------------------ methods


def _fill(self: TracedArray, value: Any) -> None:
    if np.ndim(value):
        error = ArgumentError if isinstance(value, (list, tuple)) else ValueRangeError
        raise error("setting an array element with a sequence", operand="value")
    self[...] = value


def _method_reshape(
    self: TracedArray, *shape: Any, order: Any = "C", copy: Any = None
) -> TracedArray:
    return copies.reshaped_as(self, shape[0] if len(shape) == 1 else shape, order, copy)


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
        for keyword in [k for k, v in kwargs.items() if is_default(k, v)]:
            if keyword not in parameters_of(ours):
                del kwargs[keyword]
        for keyword in kwargs:
            if keyword not in parameters_of(ours):
                raise UnsupportedKeywordError(
                    f"ndarray.{name}: {keyword}= is not translated", operand=keyword
                )
        bound(f"ndarray.{name}", ours, (self, *args), kwargs)
        return scalars.like(self, ours(self, *args, **kwargs))

    return method


def _conjugate(self: TracedArray) -> Any:
    """The array itself, of NumPy's own numbers; of others a result of np.conjugate."""
    return self if self.dtype.num < _FIRST_OF_OTHERS else np.conjugate(self)


_FIRST_OF_OTHERS = 256  # NPY_USERDEF of numpy/ndarraytypes.h: bfloat16, float8_e4m3fn, ...


def _matrix_transpose(self: TracedArray) -> TracedArray:
    if self.ndim < 2:
        raise ValueRangeError("matrix transpose with ndim < 2 is undefined")
    return swapaxes(self, -1, -2)


def _on_device(self: TracedArray, device: Any) -> TracedArray:
    """NumPy has one device."""
    if device != "cpu":
        raise ValueRangeError(f"Unsupported device: {device}. Only 'cpu' is accepted.")
    return self


_METHODS: dict[str, Function | property] = {
    **{
        f.__name__: _of_function(f)
        for f in (
            np.sum, np.prod, np.mean, np.var, np.std, np.max, np.min, np.any, np.all, np.argmax,
            np.argmin, np.clip, np.dot, np.swapaxes, np.squeeze, np.ravel, np.round, np.cumsum,
            np.cumprod, np.repeat, np.take, np.diagonal, np.trace, np.searchsorted, np.argpartition,
        )
    },
    "astype": _of(copies.converted, "astype", ("dtype", "order", "casting", "subok", "copy")),
    **{name: _of(_conjugate, name) for name in ("conj", "conjugate")},
    "copy": _of(copies.method_copied, "copy"),
    "flatten": _of(copies.flattened, "flatten"),
    "fill": _of(_fill, "fill"),
    "reshape": _of(_method_reshape, "reshape"),
    "transpose": _of(_method_transpose, "transpose"),
    "T": property(lambda self: scalars.like(self, views.transposed(self))),
    "mT": property(_matrix_transpose),
    "real": property(lambda self: self),
    "imag": property(np.zeros_like),
    "device": property(lambda self: "cpu"),
    "to_device": _of(_on_device, "to_device", ("device",)),
    **OPERATORS,
}  # fmt: skip

for _name, _method in _METHODS.items():
    setattr(TracedArray, _name, _method)

method("__array_ufunc__")(call_ufunc)
