"""A spec for each argument of the function that the command line names, and any exception raised by
that function, never by nkigen-lite's code.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from neuroncore.commands.arrays import argument_spec
from neuroncore.commands.suggestions import suggestion
from neuroncore.errors import KernelError, OptionError
from nkigen_lite.tensors.errors import SpecError
from nkigen_lite.tensors.spec import Spec, as_spec

_OURS = ("nkigen_lite", "neuroncore")
_ARRAYS = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class SpecOptionError(SpecError, OptionError):
    """A `--spec` that is not one, is missing, or has no parameter."""


def match_specs(function: Callable[..., Any], given: Sequence[str]) -> list[Spec]:
    """The specs in the order of the function's parameters.

    given: "x=f32[128, 512]" by name, "f32[128, 512]" in order, those by name last. A parameter
    that has a default may be left out where none after it is given.

    Raises SpecOptionError for a spec that is not one, is missing, comes twice or has no parameter.
    """
    parameters = {n: p for n, p in _parameters(function).items() if p.kind in _ARRAYS}
    names = list(parameters)
    specs: dict[str, Spec] = {}
    for number, text in enumerate(given):
        name, equals, spec = text.rpartition("=")
        name = name.strip() if equals else dict(enumerate(names)).get(number, "")
        if name not in names:
            raise _superfluous(text, name, names)
        if name in specs:
            raise SpecOptionError(f"two specs for {name}", got=text)
        specs[name] = _spec(spec)
    missing = [name for name in names if _is_missing(parameters[name], specs, names)]
    if missing:
        raise SpecOptionError(
            f"no spec for {', '.join(missing)}", expected=f"a spec for each of {', '.join(names)}",
            hint=" ".join(f"--spec '{name}=f32[128,512]'" for name in missing),
        )  # fmt: skip
    return [specs[name] for name in names if name in specs]


def _spec(text: str) -> Spec:
    try:
        argument_spec(text)  # rejects an array without elements
        return as_spec(text)
    except KernelError as wrong:
        raise SpecOptionError(
            wrong.what, expected=wrong.expected, got=wrong.got, hint=wrong.hint
        ) from None


def _superfluous(text: str, name: str, names: list[str]) -> SpecOptionError:
    what = f"{name} is not an argument" if name else "there are more specs than arguments"
    return SpecOptionError(
        what, expected=f"specs for {', '.join(names) or 'nothing: it takes no arrays'}", got=text,
        hint=suggestion(name, names),
    )  # fmt: skip


def _is_missing(parameter: inspect.Parameter, specs: dict[str, Spec], names: list[str]) -> bool:
    """Whether the parameter needs a spec: it has no default, or a later one has a spec."""
    if parameter.name in specs:
        return False
    later = names[names.index(parameter.name) :]
    return parameter.default is parameter.empty or not specs.keys().isdisjoint(later)


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The function's parameters. Raises SpecOptionError where not each can have a spec."""
    try:
        found = inspect.signature(function).parameters
    except (TypeError, ValueError):
        raise SpecOptionError(
            f"{function!r} does not say what it takes", hint="write a def with parameters around it"
        ) from None
    for parameter in found.values():
        if parameter.kind is parameter.VAR_POSITIONAL or (
            parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty
        ):
            raise SpecOptionError(
                f"{parameter} of the function cannot have a spec",
                expected="parameters that are given in order",
            )
    return dict(found)


class FunctionError(Exception):
    """The user's module or function raised something; that is `raised`."""

    def __init__(self, what: str, raised: Exception) -> None:
        super().__init__(f"{what} raised {type(raised).__name__}")
        self.raised = raised

    def lines(self) -> str:
        """The traceback below the lines that are ours."""
        trace_of = self.raised.__traceback__
        while trace_of is not None and _is_ours(trace_of.tb_frame.f_globals.get("__name__", "")):
            trace_of = trace_of.tb_next
        return "".join(traceback.format_exception(type(self.raised), self.raised, trace_of))


class users_code(AbstractContextManager[None]):  # noqa: N801
    """Only around calls of what the user names: anything may come from there.

    Raises FunctionError for it. A KernelError, which has a place, and an exception raised in a
    line of nkigen-lite, which is not a mistake of the user's, pass unchanged.
    """

    def __init__(self, what: str) -> None:
        self.what = what

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        if not isinstance(raised, Exception) or isinstance(raised, KernelError):
            return
        if not _came_from_us(trace):
            raise FunctionError(self.what, raised) from raised


def _came_from_us(trace: TracebackType | None) -> bool:
    """Whether the innermost line is nkigen-lite's; below this file's callers there may be none."""
    frames = [frame for frame, _ in traceback.walk_tb(trace)]
    name = frames[-1].f_globals.get("__name__", "") if frames else ""
    return name.partition(".")[0] in _OURS


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in (*_OURS, "importlib", "contextlib")
