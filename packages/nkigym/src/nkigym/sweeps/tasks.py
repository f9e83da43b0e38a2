"""Sweep files: which functions, shapes, targets and seeds are tuned, and how."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import product
from math import inf
from pathlib import Path
from typing import Any

from neuroncore.commands.function import parse_name
from neuroncore.commands.suggestions import did_you_mean
from neuroncore.commands.user_folder import leave_user_folder
from neuroncore.documents import parse_toml, read_utf8
from neuroncore.errors import KernelError
from neuroncore.surface import DEFAULT_VERSION
from neuroncore.targets import resolve_target
from nkigen_lite.compiler.compile import check_version
from nkigym.search import STRATEGIES, Budget, parse_budget
from nkigym.store.problem_keys import costs_version
from nkigym.tuning.loading import load_kernel
from nkigym.tuning.task import STARTS
from tokenplan.executors import release

EXAMPLE = """\
[sweep]
budget = 100                       # as of `nkigym tune`; each field can be set by function too
strategy = "descent"
targets = ["trn2"]
nki = "0.7"
seeds = [0]
start = "generated"                # or "baseline", "best", "both"

[[function]]
name = "matmul.py:matmul"          # a file is relative to the sweep file
shapes = [["bf16[256,256]", "bf16[256,512]"]]
"""
"""A sweep file with every field."""


class SweepFileError(KernelError):
    """A sweep file that cannot be used."""


@dataclass(frozen=True, slots=True)
class SweepTask:
    """One tuning. Equal keys are equal tunings, of a function whose source is the same."""

    function: str
    specs: tuple[str, ...]
    target: str | None
    nki: str | None
    budget: Budget
    strategy: str = "descent"
    seed: int = 0
    options: Mapping[str, Any] | None = None
    """Other arguments of `tune`."""
    arguments: tuple[str, ...] | None = None
    """The specs in the order of the function's arguments, in one spelling."""

    @property
    def label(self) -> str:
        """The function, its shapes and target, for readers."""
        name = self.function.rpartition(":")[2]
        return f"{name} {' '.join(self.specs)} {self.target or ''}".strip()

    @property
    def identity(self) -> str:
        """The fields as text, the same for each spelling of specs and of a file's path."""
        file = _file(self.function)
        function = f"{os.path.realpath(file)}{self.function.removeprefix(file)}" if file else None
        specs = self.specs if self.arguments is None else self.arguments
        fields = asdict(self) | {"specs": specs, "function": function or self.function}
        return json.dumps(fields, sort_keys=True, default=str)

    def key(self) -> str:
        """The digest of the task, of its function's file and the ones beside it that this imports,
        of the cost constants and of this project's release.
        """
        content = [self.identity, _sources_digest(self.function), costs_version(), release()]
        return sha256(json.dumps(content).encode()).hexdigest()

    def has_key(self, key: str) -> bool:
        """Whether it is still that of the source, which may have been edited or removed."""
        try:
            return self.key() == key
        except (KernelError, OSError):
            return False


def _where(function: str) -> str:
    return function if ":" not in function else parse_name(function).where


def _file(function: str) -> str:
    """The file of a function or program; empty for a module."""
    where = _where(function)
    return where if os.path.isfile(where) else ""  # noqa: PTH113  # no name is too long


def _sources_digest(function: str) -> str:
    where = _where(function)
    file, folder = Path(where), Path(where).parent
    if not _file(function):
        try:
            spec = importlib.util.find_spec(where)
        except (ImportError, ValueError):  # not a module: the job reports it
            spec = None
        if spec is None or spec.origin is None:
            return ""
        file = Path(spec.origin)
        folder = file.parents[where.count(".") + (file.name == "__init__.py")]
    digest = sha256()
    for source in sorted(_imported_files(file, folder)):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def _imported_files(file: Path, folder: Path) -> set[Path]:
    """A file, and the modules in a folder that it imports, and so on."""
    found, todo = set[Path](), [file]
    while todo:
        source = todo.pop()
        if source not in found:
            found.add(source)
            todo += filter(Path.is_file, _imports(source, folder))
    return found


def _imports(file: Path, folder: Path) -> Iterator[Path]:
    """Where the modules of import statements would be."""
    try:
        tree = ast.parse(file.read_bytes()) if file.suffix == ".py" else ast.Module([], [])
    except (SyntaxError, ValueError):
        return  # importing it says so
    for node in ast.walk(tree):
        for base, module in _modules(node, file, folder):
            place = base.joinpath(*filter(None, module.split(".")))
            yield from (place.with_suffix(".py"), place / "__init__.py")


def _modules(node: ast.AST, file: Path, folder: Path) -> Iterator[tuple[Path, str]]:
    """The modules that a statement may import, each below a folder."""
    match node:
        case ast.Import(names):
            yield from ((folder, alias.name) for alias in names)
        case ast.ImportFrom(module, names, level):
            base = file.parents[level - 1] if level else folder
            yield base, module or ""
            yield from ((base, f"{module or ''}.{alias.name}") for alias in names)


_COMMON: Mapping[str, type] = {
    "budget": object, "strategy": str, "targets": list, "nki": str, "seeds": list,
    "start": str,
}  # fmt: skip
_FUNCTION: Mapping[str, type] = {"name": str, "shapes": list, **_COMMON}
_DEFAULTS: Mapping[str, Any] = {
    "budget": 100, "strategy": "descent", "targets": ["trn2"], "nki": DEFAULT_VERSION, "seeds": [0],
    "start": "generated",
}  # fmt: skip

_LISTS: Mapping[str, tuple[type, str]] = {
    "shapes": (list, '[["f32[128,64]"]]'), "targets": (str, '["trn2"]'), "seeds": (int, "[0]"),
}  # fmt: skip


def read_sweep(path: Path, limit_s: float = inf) -> tuple[SweepTask, ...]:
    """The tasks of a sweep file, in its order.

    limit_s: the limit of a job, which a budget of time has to be below.

    Raises SweepFileError.
    """
    given = _parsed(path)
    _check_fields(f"{path}", given, {"sweep": dict, "function": list})
    common = given.get("sweep", {})
    _check_fields(f"[sweep] of {path}", common, _COMMON)
    functions = given.get("function", [])
    if not functions:
        raise SweepFileError(f"{path} names no function", expected="[[function]] with a name")
    tasks: list[SweepTask] = []
    for number, function in enumerate(functions, 1):
        where = f"[[function]] {number} of {path}"
        _check_fields(where, function, _FUNCTION)
        try:
            tasks += _tasks(where, path.parent, {**_DEFAULTS, **common, **function}, limit_s)
        except KernelError as wrong:
            what = wrong.what if where in wrong.what else f"{where}: {wrong.what}"
            raise SweepFileError(
                what, expected=wrong.expected, got=wrong.got, hint=wrong.hint
            ) from None
    _check_repeats(path, tasks)
    return tuple(tasks)


def _check_repeats(path: Path, tasks: Sequence[SweepTask]) -> None:
    """Raises SweepFileError where two tasks are equal, also in two spellings."""
    ((task, times),) = Counter(task.identity for task in tasks).most_common(1)
    if times > 1:
        repeated = next(each for each in tasks if each.identity == task)
        raise SweepFileError(
            f"{path} lists {repeated.label}, seed {repeated.seed}, {times} times",
            expected="each function, shapes, target and seed once",
        )


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return parse_toml(read_utf8(path))
    except OSError as wrong:
        raise SweepFileError(f"can't open {str(path)!r}: {wrong.strerror}") from None
    except ValueError as wrong:
        raise SweepFileError(f"{path} is not TOML", got=str(wrong)) from None


def _check_fields(where: str, given: Any, fields: Mapping[str, type]) -> None:
    if not isinstance(given, dict):
        raise SweepFileError(f"{where} is not a table")
    for name, value in given.items():
        if name not in fields:
            raise SweepFileError(
                f"{where} has an unknown field {name!r}{did_you_mean(name, fields)}",
                expected=", ".join(fields),
            )
        if not isinstance(value, fields[name]):
            raise SweepFileError(
                f"{name!r} of {where} has a wrong type",
                expected=fields[name].__name__, got=repr(value),
            )  # fmt: skip


def _tasks(
    where: str, folder: Path, given: Mapping[str, Any], limit_s: float
) -> Iterator[SweepTask]:
    if "name" not in given or not given.get("shapes"):
        raise SweepFileError(f"{where} lacks a name or shapes", expected='shapes = [["f32[…]"]]')
    _check_values(where, given)
    budget = parse_budget(str(given["budget"]))
    budget.check_below(limit_s, where)
    check_version(given["nki"])
    name = _located(folder, given["name"])
    shapes = [(specs, _arguments(where, name, specs, given["nki"])) for specs in given["shapes"]]
    for (specs, arguments), target, seed in product(shapes, given["targets"], given["seeds"]):
        yield SweepTask(
            name, tuple(specs), resolve_target(target).name, given["nki"], budget,
            given["strategy"], seed, {"start": given["start"]}, arguments,
        )  # fmt: skip


def _check_values(where: str, given: Mapping[str, Any]) -> None:
    for field, known in (("strategy", STRATEGIES), ("start", STARTS)):
        if given[field] not in known:
            raise SweepFileError(
                f"{given[field]!r} is not a {field}{did_you_mean(given[field], known)}",
                expected=", ".join(known),
            )
    for field, (kind, example) in _LISTS.items():
        if not given[field] or any(type(value) is not kind for value in given[field]):
            raise SweepFileError(
                f"{field!r} of {where} does not list such values", expected=f"{field} = {example}",
                got=repr(given[field]),
            )  # fmt: skip
    if min(given["seeds"]) < 0:
        raise SweepFileError(f"a seed of {where} is not 0 or more", got=repr(min(given["seeds"])))


def _arguments(where: str, name: str, specs: Sequence[Any], nki: str) -> tuple[str, ...]:
    """The specs of the arguments in order. Raises SweepFileError where the function is not there or
    does not take such arguments.
    """
    try:
        return tuple(map(str, load_kernel(name, list(map(str, specs)), nki=nki)[1]))
    except (Exception, SystemExit) as wrong:  # of the user's file, too
        what = wrong.what if isinstance(wrong, KernelError) else f"{type(wrong).__name__}: {wrong}"
        raise SweepFileError(
            f"{where} cannot be tuned for {', '.join(map(str, specs)) or 'no argument'}: {what}"
        ) from None
    finally:
        leave_user_folder()


def _located(folder: Path, name: str) -> str:
    """The name, its file relative to the current folder."""
    file, colon, function = name.rpartition(":")
    if not colon:  # a program
        return str(folder / name)
    if not file.endswith(".py"):
        return name
    located = f"{folder / file}:{function}"
    parse_name(located)  # raises where there is not such a file
    return located
