"""`verify OLD NEW`, and `--verify` of `fix` and `diff`."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from neuroncore.commands.parser import add_output_format
from nki_migrate.cli.config import NEWEST
from nki_migrate.cli.inputs import Input
from nki_migrate.cli.options import add_runs
from nki_migrate.cli.runs import Runs, require_languages, runs_of
from nki_migrate.comments.todos import count_todos
from nki_migrate.engine.call_graph import reachable_functions
from nki_migrate.engine.notebooks import SUFFIX
from nki_migrate.engine.results import FileResult, KernelReport
from nki_migrate.facts.dialects import MIXED, UNKNOWN, file_dialect
from nki_migrate.files.sources import UnreadableSourceError, decode, read_bytes
from nki_migrate.index import FileIndex, Source
from nki_migrate.index.grids import CORES, uses_grid
from nki_migrate.settings.request import VERSIONS
from nki_migrate.verify.cases import Case, CasesError, cases_for, read_cases
from nki_migrate.verify.job import Outcome, backend_for
from nki_migrate.verify.observe import Observation
from nki_migrate.verify.pair import (
    DEFAULT_TARGET,
    Pair,
    Side,
    Verdict,
    merged,
    probes,
    verify_pairs,
)
from nki_migrate.verify.table import Row, problems, render_table


def add_verify(parser: argparse.ArgumentParser) -> None:
    """Options of the comparison."""
    add = parser.add_argument
    add("old", type=Path, metavar="OLD", help="the file before")
    add("new", type=Path, metavar="NEW", help="the file after")
    add("--entry", required=True, metavar="KERNEL", help="the function that a user calls")
    for option, side in (("--from", "old"), ("--to", "new")):
        add(option, dest=f"{side}_version", choices=("auto", *VERSIONS), default="auto",
            metavar="VER", help=f"version of {side.upper()} (default: auto)")  # fmt: skip
    add_runs(parser)
    add_output_format(parser, tuple(_FORMATS))


def verify(given: argparse.Namespace) -> int:
    """Run OLD, NEW and the case's NumPy reference in child processes, and compare."""
    require_languages()
    old, entry = given.old, given.entry
    file = given.cases or old.parent / "cases.toml"
    matching = [case for case in cases_for(read_cases(file), old) if case.kernel == entry]
    if not matching:
        raise CasesError(f"{file}: no case for {entry} of {old.name}")
    pairs = _pairs(given, matching)
    with runs_of(given) as runs:
        verdicts = verify_pairs(pairs, runs.children, runs.jobs, runs.store, runs.progress)
    rows = [Row(verdict) for verdict in merged(verdicts)]
    print(_FORMATS[given.output_format](rows), end="")
    return 0 if all(row.verdict.is_equal for row in rows) else 1


def _pairs(given: argparse.Namespace, cases: Sequence[Case]) -> list[Pair]:
    """Each case of the two files, as it is and with inputs that show what changed."""
    old, new = given.old, given.new
    before, after = (
        _version_of(file, given.entry) if version == "auto" else version
        for file, version in ((old, given.old_version), (new, given.new_version))
    )
    text, index = decode(read_bytes(new)).text, _index_of(old)
    sides = _side(old, before), _side(new, after)
    pairs = [Pair(case, *sides, cores_of(case, text, str(new))) for case in cases]
    return pairs + [probe for pair in pairs for probe in probes(pair, index, before, after)]


def _json(rows: Sequence[Row]) -> str:
    return json.dumps([row.as_json() for row in rows], indent=2, allow_nan=False) + "\n"


def _text(rows: Sequence[Row]) -> str:
    return render_table(rows) + "".join(f"{text}\n" for text in problems(rows))


_FORMATS = {"text": _text, "json": _json}


def _side(file: Path, version: str) -> Side:
    folder = file.resolve().parent
    return Side(file.resolve(), str(file), (folder,), backend_for(version, DEFAULT_TARGET))


def _version_of(file: Path, entry: str) -> str:
    """The version that runs a file: the kernel's, or the kernels' around a host function."""
    from nki_migrate.engine.version_detection import detect

    index = _index_of(file)
    if entry in index.functions:
        return _runnable(detect(index.functions[entry], index).name, file, "--from or --to")
    names = (detect(function, index).name for function in index.functions.values())
    return _runnable(file_dialect(names), file, "--from or --to")


def _index_of(file: Path) -> FileIndex:
    try:
        return FileIndex(Source(decode(read_bytes(file)).text, str(file)))
    except UnreadableSourceError as error:
        raise CasesError(f"{file}: {error}") from None
    except SyntaxError as error:
        raise CasesError(f"{file}:{error.lineno}: not Python: {error.msg}") from None


def _runnable(dialect: str, file: Path | str, option: str) -> str:
    version = dialect.partition("/")[0]
    if version in (MIXED, UNKNOWN):
        raise CasesError(f"{file}: cannot tell its version ({dialect}); name it with {option}")
    return version


# -- after a migration


def verify_results(
    inputs: Sequence[Input],
    results: Sequence[FileResult],
    cases: Path | None,
    runs: Runs,
    observations: Sequence[Observation],
) -> list[Row]:
    """A row for every kernel of the migrated files that has a case.

    Both texts run from a temporary folder, so that it does not matter whether the file has been
    overwritten; files beside them are found as they were before, or as they are after. A kernel
    that was observed is not run again.
    """
    by_path = {result.path: result for result in results if result.error is None}
    with tempfile.TemporaryDirectory(prefix="nki-verify-") as name:
        sides = _Sides(Path(name))
        items = [item for item in inputs if item.task.path in by_path]
        for item in items:
            sides.add(item, by_path[item.task.path])
        pairs = [
            pair
            for item in items
            for case in cases_of_input(item, cases)
            for pair in sides.pairs(item, by_path[item.task.path], case, observations)
        ]
        store = replace(runs.store, roots={"run": sides.root})
        found = verify_pairs(pairs, runs.children, runs.jobs, store, runs.progress)
        verdicts = merged(found)
    return [_row(verdict, by_path) for verdict in verdicts]


def cases_of_input(item: Input, cases: Path | None) -> Sequence[Case]:
    if item.file is None or item.file.suffix == SUFFIX:
        return ()
    file = cases or item.file.parent / "cases.toml"
    if cases is None and not file.exists():
        return ()
    return cases_for(read_cases(file), item.file)


def nothing_to_verify(cases: Path | None) -> None:
    """Say that `--verify` had nothing to run: silence would look like success."""
    where = str(cases) if cases else "a cases.toml beside the file"
    print(f"nki-migrate: --verify: no kernel here has a case in {where}", file=sys.stderr)


def cores_of(case: Case, text: str, path: str) -> tuple[int, ...] | None:
    """The grid of a case, where it is one of cores that the new kernel still uses."""
    if case.grid is None or len(case.grid) > 1 or case.grid[0] > CORES:
        return None
    try:
        index = FileIndex(Source(text, path))
    except SyntaxError:
        return None
    waiting = [case.kernel] if case.kernel in index.functions else []
    for name in waiting:
        waiting += [c for c in index.callees(name) if c not in waiting]
    asked = any(uses_grid(index, index.functions[name]) for name in waiting)
    return case.grid if asked else None


def judged(results: Sequence[FileResult], rows: Sequence[Row] | None) -> list[FileResult]:
    """The results with what the verification showed: what ran does, what failed does not.

    What the new kernel did wrong is left to a human; where the old one failed, nothing is shown.
    """
    verdicts = {(row.verdict.file, row.verdict.kernel): row.verdict for row in rows or ()}

    def of(path: str, kernel: KernelReport) -> KernelReport:
        verdict = verdicts.get((path, kernel.name))
        if verdict is None or verdict.says_nothing_of_new:
            return kernel
        if verdict.is_equal:
            return replace(kernel, runnable=True)
        return replace(kernel, complete=False, runnable=kernel.runnable and not verdict.new_failed)

    return [replace(r, kernels=tuple(of(r.path, k) for k in r.kernels)) for r in results]


class _Sides:
    """Old and new texts of a run, laid out as in their folders."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def _place(self, item: Input, side: str) -> Path:
        """A path below the root that is the same in each run."""
        from hashlib import sha256

        assert item.file is not None
        folder = sha256(os.fsencode(item.file.resolve().parent)).hexdigest()[:12]
        return self.root / side / folder / item.file.name

    def add(self, item: Input, result: FileResult) -> None:
        """Write both texts of a file."""
        if item.file is None:
            return
        source = decode(item.task.raw)
        for side, text in (("old", result.before), ("new", result.after)):
            place = self._place(item, side)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(source.encode(text))

    def pairs(
        self, item: Input, result: FileResult, case: Case, observations: Sequence[Observation]
    ) -> Iterator[Pair]:
        """Both sides of one case, as it is and with inputs that show what changed."""
        version = _before(item, result, case.kernel)
        target = _after(item, version)
        pair = Pair(
            case,
            self._side(item, "old", version),
            self._side(item, "new", target),
            cores_of(case, result.after, item.task.path),
            old_outcome=_run_of(case, observations) if version == "0.1" else None,
        )
        yield pair
        yield from probes(pair, FileIndex(Source(result.before, result.path)), version, target)

    def _side(self, item: Input, side: str, version: str) -> Side:
        assert item.file is not None
        place = self._place(item, side)
        path = (place.parent, item.file.resolve().parent)
        shown_as = item.task.path + (" (migrated)" if side == "new" else "")
        return Side(place, shown_as, path, backend_for(version, DEFAULT_TARGET))


def _run_of(case: Case, observations: Sequence[Observation]) -> Outcome | None:
    """The run of the old kernel under a case, if it was observed from its begin to its end."""
    runs = (seen.outcome for seen in observations if seen.case == case)
    return next((run for run in runs if run is not None and run.is_whole), None)


def _before(item: Input, result: FileResult, kernel: str) -> str:
    if item.task.request.source_version != "auto":
        return item.task.request.source_version
    own = next((k.dialect for k in result.kernels if k.name == kernel), result.dialect)
    return _runnable(own, result.path, "--from")


def _after(item: Input, version: str) -> str:
    request = item.task.request
    if not request.step or version == NEWEST:
        return max(version, request.target)
    return VERSIONS[VERSIONS.index(version) + 1]


def _row(verdict: Verdict, results: Mapping[str, FileResult]) -> Row:
    """Counts of the findings that concern a kernel: all but the other kernels' findings.

    A case may name a host function, which launches any of the file's kernels. TODOs count where the
    kernel comes to them, in any function and file.
    """
    result = results[verdict.file]
    names = {kernel.name for kernel in result.kernels}
    others = names - {verdict.kernel} if verdict.kernel in names else set()
    own = [finding for finding in result.findings if finding.kernel not in others]
    applied = {finding.rule for finding in own if finding.applied}
    if verdict.kernel not in names:
        return Row(verdict, len(applied), count_todos(result.after))
    places: dict[str, set[str]] = {}
    for path, name in reachable_functions(results.values(), (verdict.file, verdict.kernel)):
        places.setdefault(path, set()).add(name)
    todos = sum(count_todos(results[path].after, some) for path, some in places.items())
    return Row(verdict, len(applied), todos)
