"""One file from bytes to result, and many files over processes with the same answer in any number.

Workers compute, the parent writes: an interrupted worker has nothing to leave half-written.
"""

from __future__ import annotations

import ast
import importlib
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nki_migrate.comments.suppressions import SuppressionLog, read_suppressions
from nki_migrate.engine.call_graph import reachable_functions
from nki_migrate.engine.excluded_kernels import kept_before
from nki_migrate.engine.notebooks import SUFFIX, Notebook, NotebookError, read_notebook
from nki_migrate.engine.results import FileResult, FileStatus
from nki_migrate.facts.dialects import UNKNOWN
from nki_migrate.files.sources import UnreadableSourceError, decode
from nki_migrate.index import FileIndex, Project, Source, python_lines
from nki_migrate.index.matching import opcodes
from nki_migrate.rules import all_rules
from nki_migrate.rules.run_rules import RunRule
from nki_migrate.settings.request import Request

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

# Below this many files per process a new process may cost more than it saves: where it cannot be
# forked, importing libcst and ours takes as long as about four kernel files
# (benchmarks/migrate_check.py).
_FILES_PER_PROCESS = 4


@dataclass(frozen=True, slots=True)
class Task:
    """One file to migrate: its bytes as read, its name for the user, and its request."""

    path: str
    raw: bytes
    request: Request
    self_check: bool = False
    add_ignores: bool = False


class InternalError(Exception):
    """The tool broke one of its own promises; the file is left untouched."""


def failed(path: str, error: str, before: str = "") -> FileResult:
    """The result for a file that could not be processed."""
    status = FileStatus.FAILED
    return FileResult(path, status, UNKNOWN, before=before, after=before, error=error)


def process(task: Task, project: Project | None = None) -> FileResult:
    """Migrate one file in memory. Never raises for a file: what goes wrong is in the result."""
    return _with_code(task.path, task.raw, lambda code: _processed(task, code, project))


def unparsable(path: str, raw: bytes) -> FileResult | None:
    """The failure of a file that Python does not parse; None for any other."""
    result = _with_code(path, raw, partial(_parsed, path))
    return result if result.status is FileStatus.FAILED else None


def _parsed(path: str, code: str) -> FileResult:
    ast.parse(code)
    return FileResult(path, FileStatus.SKIPPED, UNKNOWN, before=code, after=code)


def _with_code(path: str, raw: bytes, work: Callable[[str], FileResult]) -> FileResult:
    """The result of `work` with the Python of a file, or what is wrong with the file."""
    text, book = "", None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SyntaxWarnings of the user's file are not our news
            text = decode(raw).text
            if not path.endswith(SUFFIX):
                return work(text)
            book = read_notebook(text)
            return book.result(work(book.code))
    except (UnreadableSourceError, NotebookError) as error:
        return failed(path, str(error), text)
    except SyntaxError as error:
        return failed(path, f"does not parse: {_place(book, error)}: {error.msg}", text)
    except (RecursionError, MemoryError):
        return failed(path, "does not parse: nested too deeply", text)
    except Exception as error:
        return failed(path, _internal(error), text)


def _place(book: Notebook | None, error: SyntaxError) -> str:
    place = book.place(error.lineno or 1) if book else None
    return f"cell {place[0].number}, line {place[1]}" if place else f"line {error.lineno}"


def _processed(task: Task, text: str, project: Project | None) -> FileResult:
    if task.add_ignores:
        from nki_migrate.engine.ignore_comments import with_ignores

        return with_ignores(text, lambda commented: _migrate(task, commented, project))
    result = _migrate(task, text, project)
    return _checked(task, text, result, project) if result.after != text else result


def _migrate(task: Task, text: str, project: Project | None) -> FileResult:
    """The result of a file; with `--all-or-nothing` kernels that stay incomplete are left."""
    if task.request.all_or_nothing and (names := kept_before(text)):
        task = replace(task, request=replace(task.request, leave=names))
    result = _attempt(task, text, project)
    while task.request.all_or_nothing and (left := _incomplete(result)):
        request = replace(task.request, leave=(*task.request.leave, *left))
        task = replace(task, request=request)
        again = _attempt(task, text, project)
        open_ones = [f for f in result.findings if f.kernel in left and not f.applied]
        known = {f for f in again.findings if not f.edits}
        result = replace(
            again, findings=(*again.findings, *(f for f in open_ones if f not in known))
        )
    return result


def _incomplete(result: FileResult) -> list[str]:
    """The kernels that are incomplete, or reach a function of the file that is."""
    lacking = {k.name for k in result.kernels if not k.complete}
    return [
        kernel.name
        for kernel in result.kernels
        if not kernel.untouched
        and any(
            name in lacking
            for _, name in reachable_functions((result,), (result.path, kernel.name))
        )
    ]


def _attempt(task: Task, text: str, project: Project | None) -> FileResult:
    from nki_migrate.engine.migration import migrate_source  # with all rules: 0.2 s of CPU time

    if "nki-migrate:" not in text:
        return migrate_source(text, task.path, task.request, project)
    suppressions = read_suppressions(text, ast.parse(text))
    if suppressions.skip_file:
        return FileResult(task.path, FileStatus.SKIPPED, UNKNOWN, before=text, after=text)
    log = SuppressionLog(suppressions)
    result = migrate_source(text, task.path, task.request, project, log)
    return replace(
        result, findings=(*result.findings, *log.unused(task.path, RunRule.UNUSED_COMMENT))
    )


def _checked(task: Task, text: str, result: FileResult, project: Project | None) -> FileResult:
    """The result, if its text parses and (`--self-check`) a second run would not change it.

    Kernels that a second run would change are left as they are; the others of the file convert.
    """
    _check_syntax(result)
    if not task.self_check or task.request.step:
        return result
    unstable = _changed_again(task, result, project)
    if unstable:
        careful = replace(task, request=replace(task.request, leave=unstable))
        result = _migrate(careful, text, project)
        _check_syntax(result)
        _changed_again(careful, result, project, final=True)
    return result


def _check_syntax(result: FileResult) -> None:
    try:
        compile(result.after, result.path, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise InternalError(
            f"the output does not parse: line {error.lineno}: {error.msg}"
        ) from None


def _changed_again(
    task: Task, result: FileResult, project: Project | None, final: bool = False
) -> tuple[str, ...]:
    """The kernels that a second run changes; raises InternalError for changes elsewhere."""
    again = _migrate(task, result.after, project)
    if again.after == result.after:
        return ()
    lines = _changed_lines(result.after, again.after)
    kernels = _kernel_lines(result)
    homes = {line: next((n for n, r in kernels.items() if line in r), None) for line in lines}
    astray = [line for line, name in homes.items() if name is None or final]
    if astray:
        raise InternalError(f"running again would change line {astray[0]} of the output")
    return tuple(sorted({name for name in homes.values() if name}))


def _kernel_lines(result: FileResult) -> dict[str, range]:
    """Lines of each kernel of the output, the comments above it included."""
    names = {kernel.name for kernel in result.kernels}
    lines = python_lines(result.after)
    found: dict[str, range] = {}
    for node in ast.parse(result.after).body:
        if isinstance(node, ast.FunctionDef) and node.name in names:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            while first > 1 and lines[first - 2].startswith("#"):
                first -= 1
            found[node.name] = range(first, (node.end_lineno or first) + 1)
    return found


def _changed_lines(before: str, after: str) -> list[int]:
    """Lines of `before`, 1-based, that are not in `after` or that others are inserted after."""
    found = opcodes(python_lines(before), python_lines(after))
    changed = [(i, j) for tag, i, j, _, _ in found if tag != "equal"]
    return sorted({line for i, j in changed for line in range(i + 1, max(j, i + 1) + 1)}) or [1]


def _internal(error: Exception) -> str:
    frames = []
    trace = error.__traceback__
    while trace is not None:
        frames.append(f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}")
        trace = trace.tb_next
    said = str(error) if isinstance(error, InternalError) else f"{type(error).__name__}: {error}"
    return f"internal error, please report it: {said} (at {frames[-1]}); the file is untouched"


# -- what files of one run say about each other

_IMPORTED = re.compile(rb"^\s*(?:from\s+([\w.]+)\s+import|import\s+([\w., ]+))", re.MULTILINE)


_LAUNCHED = re.compile(rb"\w\.(\w+)\[[^\]\n]+\]\(")  # `module.kernel[grid](`
_DEFINED = re.compile(rb"^def\s+(\w+)", re.MULTILINE)


def importers(tasks: Sequence[Task]) -> tuple[Task, ...]:
    """The files that import another file of the run or launch its kernels, and those others."""
    launched = {name for task in tasks for name in _LAUNCHED.findall(task.raw)}
    found = _importers(tasks)
    linked = [t for t in tasks if t not in found and _mentions(t, launched)]
    return (*found, *(linked if len(linked) > 1 else ()))


def _mentions(task: Task, names: Collection[bytes]) -> bool:
    """Whether a file launches or defines one of the kernels."""
    return bool(names) and any(
        name in names for side in (_LAUNCHED, _DEFINED) for name in side.findall(task.raw)
    )


def _importers(tasks: Sequence[Task]) -> tuple[Task, ...]:
    stems = {Path(task.path).stem.encode() for task in tasks}
    asked: set[bytes] = set()
    found = []
    for task in tasks:
        wanted = imports_of(code_of(task)) & (stems - {Path(task.path).stem.encode()})
        asked |= wanted
        found += [task] if wanted else []
    named = [t for t in tasks if Path(t.path).stem.encode() in asked and t not in found]
    return (*found, *named)


def code_of(task: Task) -> bytes:
    """The Python of a task: its bytes, or a notebook's cells."""
    if not task.path.endswith(SUFFIX):
        return task.raw
    try:
        return read_notebook(decode(task.raw).text).code.encode()
    except (NotebookError, UnreadableSourceError):
        return b""  # the file's own result says so


def imports_of(raw: bytes) -> set[bytes]:
    """Every word of the import statements of a file."""
    texts = (a or b for a, b in _IMPORTED.findall(raw))
    return {word for text in texts for word in re.split(rb"[^\w]+", text)}


def build_project(tasks: Sequence[Task]) -> Project | None:
    """The index of files that import others; None when there is none."""
    project = Project()
    for task in tasks:
        _index_into(project, task)
    project.link()
    return project if project.files else None


def _index_into(project: Project, task: Task) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            project.add(FileIndex(Source(decode(code_of(task)).text, task.path)))
    except (UnreadableSourceError, SyntaxError, RecursionError, MemoryError):
        return  # the file's own result says so


# -- many files

_PROJECT: Project | None = None


def _start_worker(importing: Sequence[Task], project: Project | None) -> None:
    """A forked worker has the index; a spawned one builds it: trees do not travel well."""
    global _PROJECT
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _PROJECT = project or build_project(importing)


def _process_in_worker(task: Task) -> FileResult:
    return process(task, _PROJECT)


def process_all(tasks: Sequence[Task], jobs: int) -> Iterator[FileResult]:
    """The results in the order of the tasks, computed by up to `jobs` processes."""
    workers = min(jobs, len(tasks) // _FILES_PER_PROCESS)
    importing = importers(tasks)
    if workers < 2:
        project = build_project(importing)
        yield from (process(task, project) for task in tasks)
    else:
        yield from _in_parallel(tasks, importing, workers)


def _in_parallel(
    tasks: Sequence[Task], importing: Sequence[Task], workers: int
) -> Iterator[FileResult]:
    from multiprocessing import active_children

    pool = _pool(importing, workers)
    largest_first = sorted(range(len(tasks)), key=lambda i: -len(tasks[i].raw))
    try:
        futures = {i: pool.submit(_process_in_worker, tasks[i]) for i in largest_first}
        for i, task in enumerate(tasks):
            yield _result_of(task, futures[i], importing)
    except BaseException:  # Ctrl-C too: the remaining work is not needed
        for worker in active_children():
            worker.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _pool(importing: Sequence[Task], workers: int) -> ProcessPoolExecutor:
    """Workers that start with all that is imported here, where a fork is safe: without threads.

    Two processes of `tokenplan.executors.pool` import it again: 1.28 s of CPU until both are ready
    instead of 0.52 s.
    """
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    forks = sys.platform == "linux" and threading.active_count() == 1
    if forks:
        for module in ("engine.migration", "rewriting.plan.application"):
            importlib.import_module(f"nki_migrate.{module}")  # once for all workers
        all_rules()
    project = build_project(importing) if forks else None
    context = get_context("fork" if forks else "spawn")
    return ProcessPoolExecutor(
        workers, context, initializer=_start_worker, initargs=(importing, project)
    )


def _result_of(task: Task, future: Future[FileResult], importing: Sequence[Task]) -> FileResult:
    """A result; when a worker died, the file is tried alone, to know whether it is the culprit."""
    from concurrent.futures.process import BrokenProcessPool

    try:
        return future.result()
    except BrokenProcessPool:
        with _pool(importing, 1) as alone:
            try:
                return alone.submit(_process_in_worker, task).result()
            except BrokenProcessPool:
                died = "internal error, please report it: the worker process died on this file"
                return failed(task.path, f"{died}; it is untouched")
