"""Migrates the kernels of this folder in this process, runs both texts, compares with NumPy."""

from __future__ import annotations

import ast
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import nki_runtime
from neuroncore.checks import watching
from neuroncore.checks.subset import check_script
from neuroncore.findings import Finding
from nki_migrate.cli.verify import cores_of
from nki_migrate.comments.todos import count_todos
from nki_migrate.engine.call_graph import reachable_functions
from nki_migrate.engine.processing import Task, process
from nki_migrate.engine.results import FileResult
from nki_migrate.facts.observed import Observed, facts_of
from nki_migrate.settings.request import VERSIONS, Request
from nki_migrate.verify.arrays import fill_array
from nki_migrate.verify.cases import Arg, Case, read_cases
from nki_migrate.verify.child import bind, parameters
from nki_migrate.verify.compare import Tolerance, compare
from nki_runtime import recording

HERE = Path(__file__).parent
TARGET = VERSIONS[-1]
SECONDS = 120


class TimeLimitError(Exception):
    """A kernel did not end in time."""


@dataclass(frozen=True, slots=True)
class Ran:
    """The results of each variant of a case, and the reason why there are none."""

    results: tuple[tuple[Any, ...], ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of a kernel: `verified`, `todo`, `fails`, `WRONG` or `not under beta1`."""

    file: str
    kernel: str
    word: str
    reason: str = ""
    rules: tuple[str, ...] = ()


def all_cases() -> tuple[Case, ...]:
    """The cases of this folder."""
    return read_cases(HERE / "cases.toml")


@contextmanager
def limited(seconds: int = SECONDS) -> Iterator[None]:
    """Raise TimeLimitError after a while."""

    def stop(*_: object) -> None:
        raise TimeLimitError(f"no result within {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def arguments(case: Case, number: int) -> dict[str, Any]:
    """The arguments of a variant by name."""

    def value(arg: Arg, position: int) -> Any:
        if arg.is_array:
            return fill_array(arg, case.seed, number, position)
        return tuple(arg.value) if isinstance(arg.value, list) else arg.value

    return {a.name: value(a, i) for i, a in enumerate(case.variants()[number])}


def as_tuple(result: Any) -> tuple[Any, ...]:
    """The results of a call, one or several."""
    if result is None:
        return ()
    return tuple(result) if isinstance(result, tuple | list) else (result,)


def call(module: ModuleType, path: Path, case: Case, launch: tuple[int, ...] | None) -> Ran:
    """Call the kernel of a case on its variants."""
    names = parameters(path, case.kernel)
    kernel = getattr(module, case.kernel)
    if launch is not None:
        kernel = kernel[launch if len(launch) > 1 else launch[0]]
    found = []
    for number, variant in enumerate(case.variants()):
        given = arguments(case, number)
        positional, keywords = bind(names, given)
        results = as_tuple(kernel(*positional, **keywords))
        written = [
            given[a.name]
            for a in variant
            if a.role == "output" and (names is None or a.name in names)
        ]
        own = [r for r in results if not any(np.array_equal(r, w) for w in written)]
        found.append((*own, *written))
    return Ran(tuple(tuple(np.asarray(r) for r in one) for one in found))


def explained(error: BaseException, path: Path) -> str:
    """An error in one line, with the line of the file."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
    where = f"line {frames[-1].lineno}: " if frames else ""
    return f"{where}{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def run_old(path: Path, case: Case) -> tuple[Ran, Observed]:
    """The kernel under beta1, and what its expressions were."""
    documents: list[Mapping[str, Any]] = []
    try:
        with (
            limited(),
            nki_runtime.use(backend="beta1", shadow=True, **case.options),
            recording.instrumented(),
        ):
            module = recording.load(path)
            with recording.recorded(documents, path.parent):
                ran = call(module, path, case, case.grid)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return Ran(error=explained(error, path)), Observed()
    seen = Observed()
    for document in documents:
        seen += facts_of(document, case.kernel)
    return ran, seen


def run_new(path: Path, case: Case, cores: tuple[int, ...] | None = None) -> Ran:
    """The migrated kernel at the target, with the target's checks."""
    try:
        with (
            limited(),
            nki_runtime.use(backend="beta2", nki=TARGET, shadow=True, **case.options),
            watching("capacity", "device") as found,
        ):
            ran = call(load(path), path, case, cores)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return Ran(error=explained(error, path))
    rejected = [*found, *check_script(path, TARGET, kernels=[case.kernel])]
    errors = [str(f).splitlines()[0] for f in rejected if f.severity == "error"]
    return replace(ran, error=errors[0]) if errors else ran


def load(path: Path) -> ModuleType:
    """A file as a module of its own."""
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    sys.modules[path.stem] = module
    exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    return module


@cache
def references() -> ModuleType:
    """The module of the references."""
    return load(HERE / "references.py")


def expected(case: Case) -> Ran:
    """What NumPy computes."""
    assert case.reference is not None
    function = getattr(references(), case.reference[1])
    given = [arguments(case, number) for number in range(len(case.variants()))]
    return Ran(tuple(as_tuple(function(**one)) for one in given))


def difference(case: Case, actual: Ran, wanted: Ran) -> str:
    """Where results differ from what was expected; empty where they do not."""
    tolerance = Tolerance(case.rtol, case.atol, case.ulps)
    for number, (got, want) in enumerate(zip(actual.results, wanted.results, strict=True)):
        if len(got) != len(want):
            return f"{len(got)} results, expected {len(want)}"
        for one, other in zip(got, want, strict=True):
            found = compare(one, other, tolerance)
            if not found.is_equal:
                return f"variant {number}: {found.why}"
    return ""


def migrated(path: Path, observed: Observed, **choices: Any) -> FileResult:
    """One file, migrated to the newest version."""
    request = Request(target=TARGET, observed=observed, **choices)
    return process(Task(path.name, path.read_bytes(), request))


def _nested(text: str) -> str:
    """The kernel that a function of the file makes and returns."""
    makers = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    inner = (n for m in makers for n in m.body if isinstance(n, ast.FunctionDef))
    return next(n.name for n in inner if n.decorator_list)


def open_findings(result: FileResult, kernel: str) -> tuple[set[str], list[Finding]]:
    """A kernel with all that it reaches, and the findings there that are left to a person."""
    if all(k.name != kernel for k in result.kernels):  # `double = make_scaler(2.0)`
        kernel = _nested(result.after)
    names = {name for _, name in reachable_functions((result,), (result.path, kernel))} | {kernel}
    return names, [
        f
        for f in result.findings
        if f.kernel in names and not f.applied and f.severity in ("error", "warning")
    ]


def left_of(result: FileResult, kernel: str) -> tuple[str, ...]:
    """The rules of what is left to a person in a kernel and all that it reaches."""
    names, found = open_findings(result, kernel)
    return tuple(f.rule for f in found) or ("TODO",) * count_todos(result.after, names)


def reasons_of(result: FileResult, kernel: str) -> str:
    """The messages of what is left in a kernel and all that it reaches, each once."""
    return "; ".join(dict.fromkeys(f.message for f in open_findings(result, kernel)[1]))


def try_file(
    path: Path, cases: Sequence[Case], *, with_facts: bool, keep: Path | None = None, **choices: Any
) -> list[Tried]:
    """What becomes of the kernels of a file."""
    before = [run_old(path, case) for case in cases]
    seen = Observed()
    for _, facts in before if with_facts else ():
        seen += facts
    result = migrated(path, seen, **choices)
    with nullcontext(keep) if keep else tempfile.TemporaryDirectory() as folder:
        new = Path(folder) / path.name
        new.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(result.after, encoding="utf-8")
        return [
            _judge(new, case, ran, result) for case, (ran, _) in zip(cases, before, strict=True)
        ]


def _judge(new: Path, case: Case, before: Ran, result: FileResult) -> Tried:
    name = (new.name, case.kernel)
    wanted = expected(case)
    problem = before.error or difference(case, before, wanted)
    if problem:
        return Tried(*name, "not under beta1", problem)
    if result.error:
        return Tried(*name, "crash", result.error)
    if left := left_of(result, case.kernel):
        return Tried(*name, "todo", reasons_of(result, case.kernel), left)
    after = run_new(new, case, cores_of(case, result.after, new.name))
    if after.error:
        return Tried(*name, "fails", after.error)
    differs = difference(case, after, wanted)
    return Tried(*name, "WRONG" if differs else "verified", differs)
