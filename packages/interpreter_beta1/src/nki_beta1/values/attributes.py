"""Names of the language's functions, and attributes that its values and modules do not have."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any, Never

from neuroncore.errors import UnsupportedError

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""The functions of nl under the name that Python's complaints have for them: nl.exp."""

NL: dict[str, Callable[..., Any]] = {}
"""The functions of nl that raise UnsupportedError for a keyword without a model."""

_LABELLED = frozenset({"loop_reduce"})
"""Functions with a label for the compiler's output, `name=`."""


def nl_function(function: Callable[..., Any], name: str = "", meaning: str | None = None) -> Any:
    """Make `function` a function of nl, under `name` or its own.

    0.1 ignores keywords meant for its compiler; keywords without a model are errors here.
    """
    name = function.__name__ = name or function.__name__
    function.__doc__ = meaning or function.__doc__
    shape = inspect.signature(function)
    known = frozenset(shape.parameters)

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if kwargs and not known.issuperset(kwargs):
            if name in _LABELLED:
                kwargs.pop("name", None)
            _reject_unknown(name, {k: v for k, v in kwargs.items() if k not in known})
        return function(*args, **kwargs)

    checked.__signature__ = open_ended(shape)  # type: ignore[attr-defined]
    NL[name] = checked
    return checked


def open_ended(shape: inspect.Signature) -> inspect.Signature:
    """With the **kwargs of the documents; an argument for it raises an error."""
    rest = inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)
    return shape.replace(parameters=[*shape.parameters.values(), rest])


def _reject_unknown(what: str, unknown: dict[str, Any]) -> None:
    if unknown:
        raise UnsupportedError(
            f"nl.{what} has no parameter {next(iter(unknown))!r} here",
            got=", ".join(f"{k}={v!r}" for k, v in unknown.items()),
            hint="0.1 passes other keywords on to its compiler; ignoring one could give a wrong "
            "answer",
            operand=next(iter(unknown)),
            rule=f"NKI 0.1: nl.{what}",
        )


def call_by_name(prefix: str, names: Mapping[str, Any]) -> None:
    """Make Python call a module's functions as kernels write them: nl.exp() takes …"""
    for name, value in names.items():
        if isinstance(value, FunctionType):
            value.__qualname__ = f"{prefix}.{name}"
            FUNCTIONS[value.__qualname__] = function = inspect.unwrap(value)
            function.__qualname__ = value.__qualname__


_LATER = {
    "ap": "0.2",
    "get_pattern": "0.4",
    **dict.fromkeys(
        ("broadcast", "expand_dim", "flatten_dims", "indirect", "is_contiguous", "is_indirect",
         "permute", "rearrange", "reshape_dim", "select", "slice", "squeeze_dim", "vector_select"),
        "0.5",
    ),
}  # fmt: skip
"""What tensors of later versions have, and the version whose documents or stubs have it first."""


def _since(name: str) -> str:
    """The version in which tensors got a method that 0.1 does not have."""
    return f".{name} came with NKI {_LATER[name]}"


def later_method(name: str) -> Callable[..., Any]:
    """A method that the machine's views have and tiles of 0.1 did not."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Never:
        raise UnsupportedError(
            f"a tile of NKI 0.1 has no {name}",
            expected="astype, broadcast_to, expand_dims, reshape, view, and indices",
            hint=_since(name),
            rule="NKI 0.1: nki.language",
        )

    return method


class UnknownNameError(UnsupportedError, AttributeError):
    """An attribute that the language's value or module does not have."""


def unknown_name(owner: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """The error for `owner.name`; the hint is a similar name of `known`, or a function of nl."""
    if f"nl.{name}" in FUNCTIONS:
        hint = f"write nl.{name}(t, …)"
    elif name == "T":
        hint = "write nl.transpose(t)"
    elif name in _LATER and "tile" in owner:
        hint = _since(name)
    else:
        names = [n for n in known if not n.startswith("_")]
        near = difflib.get_close_matches(name, names, n=1)
        near = near or [n for n in names if len(n) > 2 and name.startswith(n)]
        hint = f"did you mean {near[0]}?" if near else None
    return UnknownNameError(f"{owner} has no attribute {name!r}", hint=hint)
