"""One function of a module or file as a program: called once, with what its words describe."""

from __future__ import annotations

import ast
import importlib
import inspect
import io
import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from neuroncore.commands.arrays import argument_spec, random_array
from neuroncore.commands.function import Named, find_function, function_in, parse_name
from neuroncore.commands.user_folder import in_its_folder, leave_user_folder
from neuroncore.documents import read_array, unreadable
from neuroncore.errors import KernelError, LaunchError
from neuroncore.spec import as_dtype
from nki_dtypes import DType
from nki_runtime.cli.programs import WordsError, find_source
from nki_runtime.execution.simulate import simulate
from nki_runtime.recording.instrument import compile_script

_EXPECTED = "DTYPE[SHAPE] such as f32[128,512], FILE.npy, or a Python number or text in quotes"


@dataclass(frozen=True, slots=True)
class Function:
    """The function, as a program."""

    named: Named

    def source(self) -> Path | None:
        if self.named.is_file:
            return Path(self.named.where)
        return find_source(self.named.where, [self.folder(), *sys.path])

    def folder(self) -> str:
        if self.named.is_file:
            return str(Path(self.named.where).resolve().parent)
        return str(Path.cwd())

    def run(self, args: list[str]) -> None:
        """Call it under the switch and print what each result is.

        Raises WordsError for a name that is not there and for words that are not arguments.
        """
        where = self.named.where
        sys.argv = [f"{where}:{self.named.function}", *args]
        module = _load_file(Path(where)) if self.named.is_file else importlib.import_module(where)
        try:
            function = function_in(module, self.named)
            given, named = read_arguments(args)
            _check_arguments(function, given, named)
        except LaunchError as wrong:
            raise WordsError(
                wrong.what, expected=wrong.expected, got=wrong.got, hint=wrong.hint
            ) from None
        found = simulate(function)(*given, **named)
        results = found if isinstance(found, (tuple, list)) else (found,)
        for number, result in enumerate(results):
            print(f"result {number}: {describe(result)}")


def function_of(text: str) -> Function | None:
    """The function that `text` names; None where it is the name of a file."""
    where, colon, name = text.rpartition(":")
    if not colon or not where or not name.isidentifier() or Path(text).exists():
        return None
    is_module = all(part.isidentifier() for part in where.split("."))
    return Function(Named(where, name)) if where.endswith(".py") or is_module else None


def compare_with(text: str, page: Any) -> None:
    """Let the watcher of a page compare results with the results of the function that `text` names.

    Raises LaunchError without such a function or page.
    """
    if page is None:
        raise LaunchError("--reference is shown on a page", expected="--report FILE.html")
    page.reference = in_its_folder(lambda: find_function(parse_name(text)))
    leave_user_folder()  # a program imports the modules of its own folder


def run_case(script: Path) -> str | None:
    """Call a kernel of a script that has run, on its first case in `cases.toml` beside it.

    The kernel's name; None where no case is listed. Arrays are as for `read_arguments`.
    """
    table = script.parent / "cases.toml"
    listed = tomllib.loads(table.read_text("utf-8")).get("case", []) if table.is_file() else []
    case = next((case for case in listed if case.get("file") == script.name), None)
    kernel = case and vars(sys.modules["__main__"]).get(case["kernel"])
    if case is None or kernel is None:
        return None
    rng = np.random.default_rng(case.get("seed", 0))
    given = {arg["name"]: _of_case(arg, rng) for arg in case.get("arg", [])}
    launched = case.get("grid", case.get("lnc"))
    (kernel if launched is None else kernel[launched])(**given)
    return case["kernel"]


def _of_case(arg: dict[str, Any], rng: np.random.Generator) -> Any:
    """An argument of a case: its value, or an array."""
    if "shape" not in arg:
        return arg.get("value")
    dtype, shape = _dtype(arg["dtype"], arg["name"]), tuple(arg["shape"])
    if "high" in arg:
        low, high = arg.get("low", 0), arg["high"]
        return (low + (high - low) * rng.random(shape)).astype(dtype.storage)
    return random_array(dtype, shape, rng)


def read_arguments(words: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments that `words` say, those by name behind the others.

    A spec is an array of standard normal numbers, of integers from -8 (0 without a sign)
    to 8, or of random bool; FILE.npy is what it holds; all else is a Python literal. The numbers
    depend on the words alone. Raises LaunchError.
    """
    rng = np.random.default_rng(0)
    given: list[Any] = []
    named: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name.strip().isidentifier():
            if named:
                raise LaunchError(f"argument {word} follows one by name")
            given.append(_read(word, rng))
        elif name.strip() in named:
            raise LaunchError(f"two arguments {name.strip()}", got=word)
        else:
            named[name.strip()] = _read(text, rng)
    return given, named


def _check_arguments(
    function: Callable[..., Any], given: Sequence[Any], named: dict[str, Any]
) -> None:
    """Raise LaunchError for arguments that do not fit the parameters."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of a function in C
        return
    try:
        signature.bind(*given, **named)
    except TypeError as wrong:
        parameters = [each for each in signature.parameters.values() if each.default is each.empty]
        raise LaunchError(
            f"{function.__name__}{signature}: {wrong}",
            hint=" ".join(
                ["name them as in", *(f"'{each.name}=f32[128,512]'" for each in parameters)]
            ),
        ) from None


def describe(result: Any) -> str:
    """A result, in a line."""
    if not isinstance(result, np.ndarray):
        return repr(result)
    kind = f"{result.dtype}[{', '.join(map(str, result.shape))}]"
    if not result.size:
        return kind
    numbers = result.astype(np.float64)
    if not np.isfinite(numbers).all():
        return f"{kind}, not finite in {np.count_nonzero(~np.isfinite(numbers))} elements"
    return f"{kind}, from {numbers.min():.6g} to {numbers.max():.6g}, mean {numbers.mean():.6g}"


def _read(text: str, rng: np.random.Generator) -> Any:
    spec = argument_spec(text)
    if spec is not None:
        dtype, shape = spec
        return random_array(_dtype(dtype, text), shape, rng)
    if text.endswith(".npy"):
        try:
            return read_array(text)
        except (OSError, ValueError) as wrong:
            raise LaunchError(
                f"argument {text} cannot be read: {unreadable(wrong)}",
                expected="a file that np.save wrote",
            ) from None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise LaunchError(f"{text!r} is not an argument", expected=_EXPECTED) from None


def _dtype(name: str, text: str) -> DType:
    try:
        return as_dtype(name)
    except KernelError as unknown:
        raise LaunchError(
            f"argument {text}: {unknown.what}", expected=unknown.expected, hint=unknown.hint
        ) from None


def _load_file(path: Path) -> ModuleType:
    """The file as a module of its name; its expressions are recorded where a script's would be."""
    full = str(path.resolve())
    module = ModuleType(path.stem)
    module.__file__ = full
    sys.modules.setdefault(path.stem, module)
    with io.open_code(full) as stream:
        code = compile_script(stream.read(), full)
    exec(code, vars(module))
    return module
