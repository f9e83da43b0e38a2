"""`pr`: migrate a repository in place, with a report and tests that compare old and new."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from neuroncore.commands.files import naming_output, write_folder
from neuroncore.findings import Finding
from nki_migrate.cli.config import NEWEST
from nki_migrate.cli.inputs import Input
from nki_migrate.cli.migrate import chosen_by, exit_code, migrated, print_report
from nki_migrate.cli.verify import cases_of_input
from nki_migrate.engine.results import FileResult, KernelReport
from nki_migrate.files.sources import decode
from nki_migrate.report.summary import is_hidden, is_manual, summarize, summary_line
from nki_migrate.settings.request import ConfigError
from nki_migrate.verify.table import Row, cells_of

FOLDER = "nki_migration"
"""Of what is written beside the migrated files, below the folder that is migrated."""

_TEST = '''"""Kernels before and after their migration compute the same (by nki-migrate pr)."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("nki_migrate", reason="pip install 'nki-migrate[verify]'")
ROOT = Path(__file__).parents[1]
KERNELS = [
{rows}]


@pytest.mark.parametrize(("file", "kernel", "cases"), KERNELS)
def test_the_migrated_kernel_computes_what_the_old_one_did(file, kernel, cases):
    old = Path("{folder}", "old", file)
    command = [sys.executable, "-P", "-m", "nki_migrate", "verify", old, file, "--entry", kernel]
    done = subprocess.run(
        [*command, "--cases", cases], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
'''
_HEAD = """# Migration of NKI kernels

`nki-migrate pr` rewrote the kernels below. "Equal": the old kernel, the new one and the NumPy
reference agree on the inputs of `cases.toml`. Kernels without a case were not run.

| kernel | file | verdict | edits | runs | max error vs reference | max error vs old | rules |
|---|---|---|--:|--:|--:|--:|---|
"""


def pull_request(given: argparse.Namespace) -> int:
    """Migrate a folder in place, and write the report and the tests of a pull request."""
    root = _folder_of(given)
    home = root / FOLDER
    chosen = chosen_by(given)
    given.verify = any(root.rglob("cases.toml")) or given.cases is not None
    inputs, results, rows = migrated("fix", given, chosen)
    verified = {(row.verdict.file, row.verdict.kernel): row for row in rows or ()}
    tests = _test_files(root, inputs.inputs, results, given.cases, verified)
    with naming_output("pr", home):
        write_folder(home, {"REPORT.md": _report(root, results, verified), **dict(tests)})
    differs = any(not row.verdict.is_equal for row in verified.values())
    code = exit_code("fix", results) or int(differs)
    if given.output_format != "text":
        print_report("fix", chosen, given, results, rows, code)
        return code
    print(f"{home}: report, tests and {len(verified)} verified kernels")
    print(summary_line(summarize(results), chosen.target or NEWEST))
    return code


def _folder_of(given: argparse.Namespace) -> Path:
    """The folder to migrate. Raises ConfigError where an earlier run wrote into it."""
    root = Path(given.paths[0])
    if not root.exists():
        raise ConfigError(f"{root}: no such folder")
    if len(given.paths) != 1 or not root.is_dir() or given.output_dir or given.add_ignores:
        raise ConfigError("pr takes one folder, and migrates it in place")
    if (root / FOLDER).exists():
        raise ConfigError(f"{root / FOLDER} is there already: commit it and use fix, or remove it")
    return root


def _report(root: Path, results: Sequence[FileResult], rows: dict[tuple[str, str], Row]) -> str:
    kernels = [(result, kernel) for result in results for kernel in result.kernels]
    table = "".join(
        _line(root, result, kernel, rows.get((result.path, kernel.name)))
        for result, kernel in kernels
        if kernel.dialect != "unknown" and _findings(result, kernel)
    )
    remaining = "".join(_remaining(root, result, kernel) for result, kernel in kernels)
    failed = "".join(f"- {r.path}: {r.error}\n" for r in results if r.error is not None)
    parts = [_HEAD + table]
    parts += [f"\n## What remains\n{remaining}"] if remaining else []
    parts += [f"\n## Files that were not read\n\n{failed}"] if failed else []
    return "".join(parts)


def _findings(result: FileResult, kernel: KernelReport) -> list[Finding]:
    return [f for f in result.findings if f.kernel == kernel.name]


def _line(root: Path, result: FileResult, kernel: KernelReport, row: Row | None) -> str:
    found = _findings(result, kernel)
    counts = Counter(f.rule for f in found if f.applied)
    rules = ", ".join(f"{rule} ×{n}" if n > 1 else rule for rule, n in sorted(counts.items()))
    runs, reference, old = cells_of(row) if row is not None else ("", "", "")
    cells = [kernel.name, _relative(root, result), _verdict(kernel, row), str(counts.total())]
    return f"| {' | '.join([*cells, runs, reference, old, rules])} |\n"


def _verdict(kernel: KernelReport, row: Row | None) -> str:
    if row is not None:
        return "equal" if row.verdict.is_equal else "differs" if kernel.runnable else "does not run"
    return "complete, not run" if kernel.complete else "to be finished"


def _remaining(root: Path, result: FileResult, kernel: KernelReport) -> str:
    """Remaining work on a kernel: each reason once, with its lines."""
    lines: dict[tuple[str, str], list[str]] = {}
    for finding in _findings(result, kernel):
        if not finding.applied and (is_manual(finding) or is_hidden(finding)):
            cure = finding.message
            cure += (
                f"; holds if {finding.assumption} (--unsafe-fixes)" if finding.assumption else ""
            )
            lines.setdefault((finding.rule, cure), []).append(str(finding.region.line))
    if not lines:
        return ""
    head = f"\n### {kernel.name} ({_relative(root, result)})\n\n"
    return head + "".join(
        f"- {rule}: {text} (old line {', '.join(places)}). `nki-migrate explain {rule}`\n"
        for (rule, text), places in lines.items()
    )


def _relative(root: Path, result: FileResult) -> str:
    return Path(result.path).relative_to(root).as_posix()


def _test_files(
    root: Path,
    inputs: Sequence[Input],
    results: Sequence[FileResult],
    cases: Path | None,
    rows: dict[tuple[str, str], Row],
) -> Iterator[tuple[str, str | bytes]]:
    """The old text of every migrated file, and a test of every kernel that agreed."""
    by_path = {result.path: result for result in results}
    for item in inputs:
        result = by_path[item.task.path]
        if item.file is not None and result.before != result.after:
            text = "# nki-migrate: skip-file\n" + result.before
            old = f"old/{item.file.relative_to(root).as_posix()}"
            yield old, decode(item.task.raw).encode(text)
    tests = sorted(set(_tests(root, inputs, cases, rows)))
    if tests:
        text = _TEST.format(rows="".join(f"    {t!r},\n" for t in tests), folder=FOLDER)
        yield "test_nki_migration.py", text


def _tests(
    root: Path, inputs: Sequence[Input], cases: Path | None, rows: dict[tuple[str, str], Row]
) -> Iterator[tuple[str, str, str]]:
    for item in inputs:
        if item.file is None:
            continue
        file = cases or item.file.parent / "cases.toml"
        for case in cases_of_input(item, cases):
            row = rows.get((item.task.path, case.kernel))
            if row is not None and row.verdict.is_equal:
                yield item.file.relative_to(root).as_posix(), case.kernel, _from(root, file)


def _from(root: Path, file: Path) -> str:
    """A path as the tests, which run in the root, write it."""
    inside = file.resolve().is_relative_to(root.resolve())
    return file.resolve().relative_to(root.resolve()).as_posix() if inside else str(file.resolve())
