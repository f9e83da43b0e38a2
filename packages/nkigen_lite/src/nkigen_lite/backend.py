"""The generator as a backend of the switch: NumPy functions run as the kernels made of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from neuroncore.errors import LaunchError, Place, UnsupportedError
from neuroncore.machine.backend import Choice
from neuroncore.program import execute_program
from neuroncore.surface import DEFAULT_VERSION
from nkigen_lite.compiler.compile import WRITTEN, compile

_MODULES = ("nki", "nki.collectives", "nki.isa", "nki.language", "nki.typing")


class NkigenLite:
    """The backend `nkigen-lite`; one instance, BACKEND.

    It runs plain NumPy functions. It is not a language: a program may import nki, and every name in
    it is rejected.
    """

    name = "nkigen-lite"
    versions = WRITTEN
    default_version = DEFAULT_VERSION
    top_level = "nki"
    is_language = False

    def modules(self, choice: Choice) -> Mapping[str, ModuleType]:
        """Modules that reject every name."""
        return _modules()

    def is_kernel(self, obj: object) -> bool:
        return isinstance(obj, Generated)

    def simulate(self, kernel: Any, choice: Choice) -> Generated:
        """`kernel`, a NumPy function, to be compiled for the arrays that it is called with."""
        return Generated(kernel.function if isinstance(kernel, Generated) else kernel, choice)


BACKEND = NkigenLite()


@dataclass(frozen=True, slots=True)
class Generated:
    """A NumPy function that is compiled when it is called, for the arguments that it gets."""

    function: Callable[..., Any]
    choice: Choice

    def __getitem__(self, grid: Any) -> Generated:
        """On one core. Raises UnsupportedError for more."""
        if grid not in (1, (1,)):
            raise UnsupportedError(
                f"a generated kernel on a grid of {grid}",
                hint="kernels are written for one core: leave the grid out",
            )
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's results: arrays among the arguments are the kernel's, everything else is a
        constant of it. Arrays that the function writes to are updated in place.

        Raises TraceError and its subclasses, CodegenError, LaunchError without an array.
        """
        given = _bound(self.function, args, kwargs)
        arrays = [value for value in given.arguments.values() if isinstance(value, np.ndarray)]
        if not arrays:
            raise LaunchError(
                "a generated kernel takes arrays", expected="at least one NumPy array",
                got=", ".join(type(v).__name__ for v in given.arguments.values()) or "no arguments",
            )  # fmt: skip
        function = _with_constants(self.function, given)
        kernel = compile(function, *arrays, target=self.choice.target, nki=self.choice.nki)
        options = self.choice.options
        found = execute_program(kernel.program, kernel.inputs(*arrays), options=options)
        return kernel.results(found, arrays)


def _bound(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> inspect.BoundArguments:
    """The arguments by parameter. Raises LaunchError where the function does not take them."""
    try:
        return inspect.signature(function).bind(*args, **kwargs)
    except TypeError as wrong:
        name, code = getattr(function, "__name__", "?"), getattr(function, "__code__", None)
        place = Place(code.co_filename, code.co_firstlineno) if code else None
        raise LaunchError(f"{name}: {wrong}", place=place) from None
    except ValueError:
        raise LaunchError(f"{function!r} does not say what it takes") from None


def _with_constants(
    function: Callable[..., Any], given: inspect.BoundArguments
) -> Callable[..., Any]:
    """The function of the arrays alone, in order."""
    names = [n for n, value in given.arguments.items() if isinstance(value, np.ndarray)]
    if not given.kwargs and len(names) == len(given.arguments):
        return function

    def of_arrays(*arrays: Any) -> Any:
        bound = inspect.BoundArguments(given.signature, given.arguments)  # type: ignore[arg-type]
        bound.arguments = {**given.arguments, **dict(zip(names, arrays, strict=True))}
        return function(*bound.args, **bound.kwargs)

    of_arrays.__name__ = getattr(function, "__name__", "function")
    return of_arrays


class _WithoutNames(ModuleType):
    """A module of a language that is not spoken here."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        raise UnsupportedError(
            f"{self.__name__}.{name}: backend nkigen-lite runs NumPy functions",
            expected="a function that works on NumPy arrays",
            got="a program in the NKI language",
            hint='run it with backend="beta2" (nki-run --backend beta2)',
        )


@cache
def _modules() -> Mapping[str, ModuleType]:
    """One set for all choices, children reachable from their parents."""
    made = {name: _WithoutNames(name) for name in _MODULES}
    made["nki"].__path__ = []
    for name, module in made.items():
        parent, _, leaf = name.rpartition(".")
        if parent:
            vars(made[parent])[leaf] = module
    return made
