"""`check`, `diff` and `fix`: one flow with three endings."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from neuroncore.commands.files import write_output
from neuroncore.commands.reporting import write_report
from neuroncore.commands.terminal import StatusLine, use_color
from neuroncore.findings.formats import FORMATS
from nki_migrate.cli.config import NEWEST
from nki_migrate.cli.inputs import STDIN, Input, Inputs, output_paths, read_inputs, writer
from nki_migrate.cli.runs import Runs, require_languages, runs_of
from nki_migrate.cli.settings import Chosen, assumptions_from, only_config, split_ids
from nki_migrate.cli.verify import cases_of_input, judged, nothing_to_verify, verify_results
from nki_migrate.engine.call_graph import with_reachability
from nki_migrate.engine.processing import process_all
from nki_migrate.engine.results import FileResult
from nki_migrate.facts.observed import Observed, read_facts
from nki_migrate.report import Mode, make_report
from nki_migrate.report.report import unified_diff
from nki_migrate.report.summary import is_hidden, is_manual, is_open, statistics_table
from nki_migrate.verify.observe import Observation, observe
from nki_migrate.verify.pair import DEFAULT_TARGET
from nki_migrate.verify.table import Row, problems, render_table

MANY = 8
"""Files from which on progress is shown."""


def migrate(command: Mode, given: argparse.Namespace) -> int:
    """The commands `check`, `diff` and `fix`."""
    mode = _mode(command, given)
    chosen = chosen_by(given)
    _, results, rows = migrated(mode, given, chosen)
    code = _code(mode, results, rows, given)
    print_report(mode, chosen, given, results, rows, code)
    write_report("nki-migrate", given, _results, results, rows)
    if given.verify and not rows:
        nothing_to_verify(given.cases)
    return code


def chosen_by(given: argparse.Namespace) -> Chosen:
    """The settings of a command line's options."""
    return Chosen(
        given.source, given.target, split_ids(given.select), split_ids(given.extend_select),
        split_ids(given.ignore), given.unsafe_fixes, given.nl, given.block_dims, given.todo,
        given.all_or_nothing, given.step, assumptions_from(given.assume, given.assume_file),
        _parts(given.exclude), _parts(given.extend_exclude) or (), not given.no_gitignore,
        only_config(given.config, given.isolated),
    )  # fmt: skip


def migrated(
    mode: Mode, given: argparse.Namespace, chosen: Chosen
) -> tuple[Inputs, list[FileResult], list[Row] | None]:
    """The files read, their results (written by `fix`), and with `--verify` the results of runs."""
    checking = given.self_check
    if checking is None:
        checking = os.environ.get("CI", "").lower() == "true"
    inputs = read_inputs(
        given.paths, chosen, given.stdin_filename,
        self_check=checking, notebooks=given.notebooks, add_ignores=given.add_ignores,
    )  # fmt: skip
    if given.verify or given.cases:
        require_languages()
    with runs_of(given) as runs:
        inputs, seen = with_observations(inputs, given.facts, given.cases, given.verify, runs)
        out = given.output_dir
        targets = output_paths(inputs.inputs, given.paths, out) if out else None
        act = writer(targets) if mode == "fix" else _keep
        results = _run(inputs, runs.jobs, act, given.quiet)
        rows = None
        if given.verify:
            rows = verify_results(inputs.inputs, results, given.cases, runs, seen)
    return inputs, judged(results, rows), rows


def _results(results: Sequence[FileResult], rows: Sequence[Row] | None) -> dict[str, Any]:
    """The contents of --report."""
    migrations = [(r.path, r.before, r.after, r.findings) for r in results]
    verdict = {} if rows is None else {"text": ("Verdict", render_table(rows))}
    return {"migrations": migrations} | verdict


def _mode(command: Mode, given: argparse.Namespace) -> Mode:
    """The mode of the command; exits for options that it does not have."""
    mode: Mode = "diff" if given.diff else "check" if given.check else command
    mistakes = {
        "--diff and --check exclude each other": given.diff and given.check,
        "--verify belongs to fix and diff; check changes nothing to verify":
            given.verify and mode == "check",
        "--output-dir belongs to fix": given.output_dir is not None and mode != "fix",
        "--add-ignores belongs to fix and diff; check writes nothing":
            given.add_ignores and mode == "check",
        "--add-ignores migrates nothing that --verify could run":
            given.add_ignores and given.verify,
    }  # fmt: skip
    for message, is_mistake in mistakes.items():
        if is_mistake:
            given.parser.error(message)
    return mode


def _parts(given: Sequence[str] | None) -> tuple[str, ...] | None:
    """The patterns of repeated options, each of which may hold several."""
    return tuple(part for text in given for part in text.split(",")) if given else None


def _code(
    mode: Mode,
    results: Sequence[FileResult],
    rows: Sequence[Row] | None,
    given: argparse.Namespace,
) -> int:
    """The exit code of the whole run; verifying nothing is a mistake of usage."""
    if given.verify and not rows:
        return 2
    code = exit_code(mode, results, given.exit_non_zero_on_fix)
    differs = rows is not None and not all(row.verdict.is_equal for row in rows)
    code = 1 if code == 0 and differs else code
    return 0 if given.exit_zero and code == 1 else code


def _keep(item: Input, result: FileResult) -> FileResult:
    return result


def _run(
    inputs: Inputs, jobs: int, act: Callable[[Input, FileResult], FileResult], quiet: bool
) -> list[FileResult]:
    tasks = [item.task for item in inputs.inputs]
    results = []
    line = StatusLine()
    with _imports_frozen():
        for item, result in zip(inputs.inputs, process_all(tasks, jobs), strict=True):
            results.append(act(item, result))
            if not quiet and len(tasks) >= MANY:
                line.show(f"migrating {len(results)} of {len(tasks)} files")
    line.close()
    return sorted([*with_reachability(results), *inputs.failures], key=lambda result: result.path)


@contextmanager
def _imports_frozen() -> Iterator[None]:
    """Imported objects stay: the collector does not visit them again for every file.

    Who calls this as a function, and holds nothing frozen, finds nothing frozen afterwards.
    """
    was_frozen = gc.get_freeze_count() > 0
    gc.freeze()
    try:
        yield
    finally:
        if not was_frozen:
            gc.unfreeze()


def print_report(
    mode: Mode,
    chosen: Chosen,
    given: argparse.Namespace,
    results: Sequence[FileResult],
    rows: Sequence[Row] | None,
    code: int,
) -> None:
    """The results in the format of --output-format, to stdout or the file of --output-file."""
    if mode == "diff":
        _write_out("".join(unified_diff(result) for result in results))
    report = make_report(
        results,
        target=chosen.target or chosen.config_for(Path.cwd()).get("to", NEWEST),
        source=chosen.source or "auto",
        mode=mode,
        verification=None if rows is None else [row.as_json() for row in rows],
        verified=render_table(rows) if rows else "",
        problems=problems(rows or ()),
        color=use_color(given.color) and given.output_file is None,
        quiet=given.quiet,
        verbose=given.verbose,
        with_statistics=given.statistics,
        exit_code=code,
    )
    _write(FORMATS[given.output_format](report), mode, given)
    if given.statistics and given.output_format in ("jsonl", "github", "junit"):
        sys.stderr.write("\n".join(statistics_table(results)) + "\n")


def _write(text: str, mode: Mode, given: argparse.Namespace) -> None:
    """The report to its file, or beside a diff or a migrated text that goes to stdout."""
    if given.output_file is not None:
        write_output("nki-migrate", "--output-file", given.output_file, text)
    elif mode == "diff" or (mode == "fix" and STDIN in given.paths):
        sys.stderr.write(text)
    else:
        _write_out(text)


def _write_out(text: str) -> None:
    sys.stdout.buffer.write(text.encode("utf-8"))
    sys.stdout.buffer.flush()


def exit_code(mode: Mode, results: Sequence[FileResult], non_zero_on_fix: bool = False) -> int:
    """The exit code that the results alone lead to (notes never count)."""
    if any(result.error is not None for result in results):
        return 2
    is_left = {"check": is_open, "diff": is_manual, "fix": lambda f: is_manual(f) or is_hidden(f)}
    counts_changes = mode == "diff" or (mode == "fix" and non_zero_on_fix)
    return int(
        any(is_left[mode](finding) for result in results for finding in result.findings)
        or (counts_changes and any(result.before != result.after for result in results))
    )


# -- what runs of the old kernels showed -----------------------------------------------------------


def with_observations(
    inputs: Inputs,
    facts: Sequence[Path],
    cases: Path | None,
    verify: bool,
    runs: Runs,
) -> tuple[Inputs, Sequence[Observation]]:
    """The inputs with the facts about each in its request, and the runs that were made for it.

    User code runs only where cases are named or `--verify` needs it anyway. Raises FactsError
    and CasesError.
    """
    observed = Observed()
    for file in facts:
        observed += read_facts(file)
    made = _of_cases(inputs.inputs, cases, runs) if cases is not None or verify else []
    for observation in made:
        observed += observation.facts
    if not observed:
        return inputs, made
    return replace(inputs, inputs=tuple(_with(item, observed) for item in inputs.inputs)), made


def _with(item: Input, observed: Observed) -> Input:
    request = replace(item.task.request, observed=observed.about(item.task.path))
    return replace(item, task=replace(item.task, request=request))


def _of_cases(inputs: Sequence[Input], cases: Path | None, runs: Runs) -> list[Observation]:
    old = [item for item in inputs if item.file is not None and b"neuronxcc" in item.task.raw]
    known = [(case, item.file) for item in old for case in cases_of_input(item, cases)]
    wanted = [(case, file) for case, file in known if file is not None]
    args = (runs.children, runs.jobs, DEFAULT_TARGET, runs.store, runs.progress)
    made = observe(wanted, *args)
    for seen in made:
        if seen.error is not None:
            print(
                f"nki-migrate: {seen.case.kernel} of {seen.case.file} stopped while observed:"
                f" {seen.error}",
                file=sys.stderr,
            )
    return made
