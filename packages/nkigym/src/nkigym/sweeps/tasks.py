"""Sweep files: which functions, shapes, targets and seeds are tuned, and how.

[sweep]
budget = 100                       # as of `nkigym tune`; each field can be set by function too
strategy = "descent"
targets = ["trn2"]
nki = "0.7"
seeds = [0]

[[function]]
name = "matmul.py:matmul"          # a file is relative to the sweep file
shapes = [["bf16[256,256]", "bf16[256,512]"]]
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import product
from math import inf
from pathlib import Path
from typing import Any

from neuroncore.commands.function import parse_name
from neuroncore.commands.suggestions import did_you_mean
from neuroncore.documents import parse_toml
from neuroncore.errors import KernelError
from neuroncore.surface import DEFAULT_VERSION
from neuroncore.targets import resolve_target
from nkigen_lite.compiler.compile import check_version
from nkigym.search import STRATEGIES, Budget, parse_budget
from nkigym.store.problem_keys import costs_version


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

    @property
    def label(self) -> str:
        """The function, its shapes and target, for readers."""
        name = self.function.rpartition(":")[2]
        return f"{name} {' '.join(self.specs)} {self.target or ''}".strip()

    def key(self) -> str:
        """The digest of the task, of its function's file and of the cost constants."""
        content = [asdict(self), _source_digest(self.function), costs_version()]
        return sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def _source_digest(function: str) -> str:
    where = function if ":" not in function else parse_name(function).where
    if not os.path.isfile(where):  # noqa: PTH113  # False also for a name that is too long
        try:
            spec = importlib.util.find_spec(where)
        except (ImportError, ValueError):  # not a module: the job reports it
            spec = None
        where = "" if spec is None or spec.origin is None else spec.origin
    return sha256(Path(where).read_bytes()).hexdigest() if where else ""


_COMMON: Mapping[str, type] = {
    "budget": object, "strategy": str, "targets": list, "nki": str, "seeds": list,
    "start": str,
}  # fmt: skip
_FUNCTION: Mapping[str, type] = {"name": str, "shapes": list, **_COMMON}
_DEFAULTS: Mapping[str, Any] = {
    "budget": 100, "strategy": "descent", "targets": ["trn2"], "nki": DEFAULT_VERSION, "seeds": [0],
    "start": "generated",
}  # fmt: skip


def read_sweep(path: Path, limit_s: float = inf) -> tuple[SweepTask, ...]:
    """The tasks of a sweep file, in its order.

    limit_s: the limit of a job, which a budget of time has to be below.

    Raises SweepFileError; what targets, versions, budgets and names raise.
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
        tasks += _tasks(where, path.parent, {**_DEFAULTS, **common, **function}, limit_s)
    return tuple(tasks)


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return parse_toml(path.read_text("utf-8"))
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
    if given["strategy"] not in STRATEGIES:
        raise SweepFileError(
            f"{given['strategy']!r} is not a strategy{did_you_mean(given['strategy'], STRATEGIES)}",
            expected=", ".join(STRATEGIES),
        )
    budget = parse_budget(str(given["budget"]))
    budget.check_below(limit_s, where)
    check_version(given["nki"])
    for specs, target, seed in product(given["shapes"], given["targets"], given["seeds"]):
        yield SweepTask(
            _located(folder, given["name"]), tuple(map(str, specs)), resolve_target(target).name,
            given["nki"], budget, given["strategy"], _seed(where, seed),
            {"start": given["start"]},
        )  # fmt: skip


def _seed(where: str, seed: Any) -> int:
    if not isinstance(seed, int) or seed < 0:
        raise SweepFileError(f"a seed of {where} is not 0 or more", got=repr(seed))
    return seed


def _located(folder: Path, name: str) -> str:
    """The name, its file relative to the current folder."""
    file, _, function = name.rpartition(":")
    if not file.endswith(".py"):
        return name
    located = f"{folder / file}:{function}"
    parse_name(located)  # raises where there is not such a file
    return located
