"""Functions of nisa behind the signatures of 0.1."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from neuroncore.errors import SignatureError
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.surface import Param, Signature
from nki_beta1.call.call_plans import call_key, record_call, replay_call
from nki_beta1.execution.core import core_of
from nki_beta1.values.attributes import open_ended

Body = Callable[[dict[str, Any]], Any]
"""What a function does with its arguments, by the names that the record has for them."""


def function_of(
    name: str, known: Signature, body: Body, *, knows_its_mask: bool
) -> Callable[..., Any]:
    """`body` behind the parameter list of 0.1; other keywords raise SignatureError.

    `knows_its_mask`: the mask refers to other axes than the axes of the operand of `apply`.
    """
    shape = inspect.Signature([_parameter(p) for p in known.params])
    fields = {p.name: p.field for p in known.params}
    in_place = [p.field for p in known.params if not p.keyword_only]
    defaults = {p.field: p.default for p in known.params if not p.required}

    def function(*args: Any, **kwargs: Any) -> Any:
        if "name" in kwargs and known.swallows and isinstance(kwargs["name"], str):
            del kwargs["name"]  # a label for the compiler's output, a parameter from 0.2 on
        mask = kwargs.get("mask")
        if mask is not None and knows_its_mask:
            return checked(args, kwargs)
        core = core_of(name)
        core.flush()
        key, tensors = call_key(core, function, args, kwargs)
        tile = replay_call(core, key, mask, *tensors)
        if tile is not None:
            return tile
        result = checked(args, kwargs)
        record_call(core, key, result, *tensors)
        return result

    def checked(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = dict(zip(in_place, args, strict=False))
        named = {fields[k]: v for k, v in kwargs.items() if k in fields}
        values = {**defaults, **given, **named}
        fits = len(given) == len(args) and len(named) == len(kwargs) and not given.keys() & named
        if not fits or len(values) != len(fields):
            try:
                shape.bind(*args, **kwargs)
            except TypeError as mismatch:
                raise _mismatch(name, known, kwargs, mismatch) from None
        return body(values)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = body.__doc__ or INSTRUCTIONS[name].run.__doc__
    function.__signature__ = open_ended(shape) if known.swallows else shape  # type: ignore[attr-defined]
    return function


def _parameter(param: Param) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY if param.keyword_only else _ANYWHERE
    default = inspect.Parameter.empty if param.required else _as_written(param)
    return inspect.Parameter(param.name, kind, default=default)


_ANYWHERE = inspect.Parameter.POSITIONAL_OR_KEYWORD


def _as_written(param: Param) -> Any:
    """A default as 0.1 shows it: np.amax, where the record has the operation's name."""
    return getattr(np, param.default) if param.text.startswith("np.") else param.default


def _mismatch(
    name: str, known: Signature, kwargs: dict[str, Any], mismatch: TypeError
) -> SignatureError:
    unknown = [k for k in kwargs if all(p.name != k for p in known.params)]
    return SignatureError(
        f"no parameter {unknown[0]!r}" if unknown else str(mismatch),
        expected=str(known),
        got=", ".join(unknown) or None,
        hint="0.1 passes other keywords on to its compiler; ignoring one could give a wrong answer"
        if unknown and known.swallows
        else None,
        operand=unknown[0] if unknown else None,
        instruction=name,
        rule=f"NKI 0.1: signature of {name}",
    )
