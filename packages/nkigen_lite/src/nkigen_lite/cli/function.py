"""What the command line names: a function of a module or file, and a spec for each argument; and
any exception raised by that code, never by nkigen-lite's.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from neuroncore.errors import KernelError
from nkigen_lite.tensors.errors import SpecError, TraceError
from nkigen_lite.tensors.spec import Spec, as_spec

_FORM = "MODULE:FUNCTION or FILE.py:FUNCTION, such as kernels.mlp:mlp or kernels/mlp.py:mlp"
_ARRAYS = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class NoFunctionError(TraceError):
    """A module, file or function that is not there."""


@dataclass(frozen=True, slots=True)
class Named:
    """A function by name. `source` is the file or module as it is shown to readers."""

    where: str
    function: str

    @property
    def is_file(self) -> bool:
        return self.where.endswith(".py")

    @property
    def source(self) -> str:
        return Path(self.where).name if self.is_file else self.where

    def __str__(self) -> str:
        return f"{self.source}:{self.function}"


def parse_name(text: str) -> Named:
    """The parts of `FILE.py:FUNCTION`. Raises NoFunctionError."""
    where, colon, function = text.rpartition(":")
    if not colon or not where or not function:
        raise NoFunctionError(f"{text!r} names no function", expected=_FORM)
    return Named(where, function)


def find_function(named: Named) -> Callable[..., Any]:
    """The function, its module imported as Python would from here (a file: from its folder).

    Raises NoFunctionError; what the module itself raises comes as it is.
    """
    module = _load_file(Path(named.where)) if named.is_file else _load_module(named.where)
    found: Any = module
    for part in named.function.split("."):
        if not hasattr(found, part):
            near = get_close_matches(part, _functions(found), n=1)
            raise NoFunctionError(
                f"{named.where} has no {named.function}",
                expected=f"one of its functions: {', '.join(_functions(found)) or 'it has none'}",
                hint=f"did you mean {near[0]}?" if near else None,
            )
        found = getattr(found, part)
    if not callable(found):
        raise NoFunctionError(
            f"{named.where}:{named.function} is not a function", got=type(found).__name__
        )  # fmt: skip
    return found


def match_specs(function: Callable[..., Any], given: Sequence[str]) -> list[Spec]:
    """The specs in the order of the function's parameters.

    given: "x=f32[128, 512]" by name, "f32[128, 512]" in order, those by name last. A parameter
    that has a default may be left out where none after it is given.

    Raises SpecError for a spec that says nothing, is missing, comes twice or has no parameter.
    """
    parameters = [p for p in _parameters(function).values() if p.kind in _ARRAYS]
    names = [p.name for p in parameters]
    specs: dict[str, Spec] = {}
    for number, text in enumerate(given):
        name, equals, spec = text.rpartition("=")
        name = name.strip() if equals else names[number] if number < len(names) else ""
        if name not in names:
            raise _superfluous(text, name, names)
        if name in specs:
            raise SpecError(f"two specs for {name}", got=text)
        specs[name] = as_spec(spec)
    missing = [
        p.name for p in parameters
        if p.name not in specs and (p.default is p.empty or _is_before(p.name, specs, names))
    ]  # fmt: skip
    if missing:
        raise SpecError(
            f"no spec for {', '.join(missing)}", expected=f"a spec for each of {', '.join(names)}",
            hint=" ".join(f"--spec '{name}=f32[128,512]'" for name in missing),
        )  # fmt: skip
    return [specs[name] for name in names if name in specs]


def _superfluous(text: str, name: str, names: list[str]) -> SpecError:
    near = get_close_matches(name, names, n=1)
    what = f"{name} is not an argument" if name else "there are more specs than arguments"
    return SpecError(
        what, expected=f"specs for {', '.join(names) or 'nothing: it takes no arrays'}", got=text,
        hint=f"did you mean {near[0]}?" if near else None,
    )  # fmt: skip


def _is_before(name: str, specs: dict[str, Spec], names: list[str]) -> bool:
    """Whether a later parameter has a spec."""
    return any(later in specs for later in names[names.index(name) :])


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The function's parameters. Raises SpecError where not each can have a spec."""
    try:
        found = inspect.signature(function).parameters
    except (TypeError, ValueError):
        raise SpecError(
            f"{function!r} does not say what it takes", hint="write a def with parameters around it"
        ) from None
    for parameter in found.values():
        if parameter.kind is parameter.VAR_POSITIONAL or (
            parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty
        ):
            raise SpecError(
                f"{parameter} of the function cannot have a spec",
                expected="parameters that are given in order",
            )
    return dict(found)


def _functions(where: Any) -> list[str]:
    return [n for n, v in vars(where).items() if inspect.isroutine(v) and not n.startswith("_")]


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise NoFunctionError(f"can't open {str(path)!r}: no such file")
    sys.path.insert(0, str(path.resolve().parent))
    spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    return module


def _load_module(name: str) -> ModuleType:
    sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name is None or not f"{name}.".startswith(f"{missing.name}."):
            raise
        raise NoFunctionError(f"no module is called {name!r}", expected=_FORM) from None


# -- exceptions of the user's code -----------------------------------------------------------------


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
    return name.partition(".")[0] == "nkigen_lite"


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in ("nkigen_lite", "importlib", "contextlib")
