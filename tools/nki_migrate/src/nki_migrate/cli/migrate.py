"""`check`, `diff` and `fix`: one flow with three endings."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import typer

from neuroncore.commands.terminal import use_color
from neuroncore.findings.formats import FORMATS
from nki_migrate.cli import options as o
from nki_migrate.cli.config import NEWEST
from nki_migrate.cli.inputs import STDIN, Input, Inputs, output_paths, read_inputs, writer
from nki_migrate.cli.observe import with_observations
from nki_migrate.cli.settings import Chosen, assumptions_from, only_config, split_ids
from nki_migrate.cli.verify import judged, nothing_to_verify, verify_results
from nki_migrate.engine.call_graph import with_reachability
from nki_migrate.engine.processing import process_all
from nki_migrate.engine.results import FileResult
from nki_migrate.report import Mode, make_report
from nki_migrate.report.report import unified_diff
from nki_migrate.report.summary import is_hidden, is_manual, is_open, statistics_table
from nki_migrate.settings.request import ConfigError
from nki_migrate.verify.process import DEFAULT_MEBIBYTES, DEFAULT_SECONDS, Limits
from nki_migrate.verify.table import Row, render_table


@dataclass(frozen=True, slots=True)
class Output:
    """How a run reports."""

    format: str
    file: Path | None
    color: bool
    quiet: bool
    verbose: bool
    statistics: bool


def migrate(
    ctx: typer.Context,
    paths: o.Paths,
    source: o.From = None,
    target: o.To = None,
    verify: o.Verify = False,
    cases: o.CasesFile = None,
    output_dir: o.OutputDir = None,
    step: o.Step = False,
    select: o.Select = None,
    extend_select: o.ExtendSelect = None,
    ignore: o.Ignore = None,
    unsafe_fixes: o.UnsafeFixes = None,
    nl: o.Nl = None,
    block_dims: o.BlockDims = None,
    assume: o.Assume = None,
    assume_file: o.AssumeFile = None,
    todo: o.Todo = None,
    all_or_nothing: o.AllOrNothing = None,
    diff: o.DiffMode = False,
    check: o.CheckMode = False,
    output_format: o.OutputFormat = "text",
    output_file: o.OutputFile = None,
    statistics: o.Statistics = False,
    jobs: o.Jobs = None,
    exclude: o.Exclude = None,
    extend_exclude: o.ExtendExclude = None,
    no_gitignore: o.NoGitignore = False,
    exit_zero: o.ExitZero = False,
    exit_non_zero_on_fix: o.ExitNonZeroOnFix = False,
    self_check: o.SelfCheck = None,
    config: o.ConfigFile = None,
    isolated: o.Isolated = False,
    quiet: o.Quiet = False,
    verbose: o.Verbose = False,
    color: o.Color = "auto",
    stdin_filename: o.StdinFilename = "<stdin>",
    timeout: o.Timeout = DEFAULT_SECONDS,
    memory: o.Memory = DEFAULT_MEBIBYTES,
    notebooks: o.Notebooks = False,
    add_ignores: o.AddIgnores = False,
    facts: o.Facts = None,
) -> None:
    """The commands `check`, `diff` and `fix`."""
    mode = _mode(ctx.info_name, diff, check)
    _check_mode(mode, verify, output_dir, add_ignores)
    chosen = Chosen(
        source, target, split_ids(select), split_ids(extend_select), split_ids(ignore),
        unsafe_fixes, nl, block_dims, todo, all_or_nothing, step,
        assumptions_from(assume, assume_file), _parts(exclude) if exclude else None,
        _parts(extend_exclude), not no_gitignore, only_config(config, isolated),
    )  # fmt: skip
    output = Output(output_format, output_file, use_color(color), quiet, verbose, statistics)
    checking = os.environ.get("CI", "").lower() == "true" if self_check is None else self_check
    inputs = read_inputs(
        paths, chosen, stdin_filename,
        self_check=checking, notebooks=notebooks, add_ignores=add_ignores,
    )  # fmt: skip
    limits = Limits(timeout, memory)
    inputs = with_observations(inputs, facts or (), cases, verify, limits, jobs)
    targets = output_paths(inputs.inputs, paths, output_dir) if output_dir else None
    act = writer(targets) if mode == "fix" else _keep
    results = _run(inputs, jobs or os.cpu_count() or 1, act, quiet)
    rows = _verified(inputs, results, cases, limits, jobs) if verify else None
    results = judged(results, rows)
    code = _code(mode, results, rows, verify, exit_non_zero_on_fix)
    code = 0 if exit_zero and code == 1 else code
    _report(mode, paths, chosen, output, results, rows, code)
    if verify and not rows:
        nothing_to_verify(cases)
    raise typer.Exit(code)


def _check_mode(mode: Mode, verify: bool, output_dir: Path | None, add_ignores: bool) -> None:
    """Options that this command does not have; raises typer.BadParameter."""
    if verify and mode == "check":
        _bad("--verify belongs to fix and diff; check changes nothing to verify")
    if output_dir is not None and mode != "fix":
        _bad("--output-dir belongs to fix")
    if add_ignores and mode == "check":
        _bad("--add-ignores belongs to fix and diff; check writes nothing")
    if add_ignores and verify:
        _bad("--add-ignores migrates nothing that --verify could run")


def _parts(given: Sequence[str] | None) -> tuple[str, ...]:
    """The patterns of repeated options, each of which may hold several."""
    return tuple(part for text in given or () for part in text.split(","))


def _verified(
    inputs: Inputs,
    results: Sequence[FileResult],
    cases: Path | None,
    limits: Limits,
    jobs: int | None,
) -> Sequence[Row]:
    return verify_results(inputs.inputs, results, cases, limits, jobs or os.cpu_count() or 1)


def _code(
    mode: Mode,
    results: Sequence[FileResult],
    rows: Sequence[Row] | None,
    verify: bool,
    non_zero_on_fix: bool,
) -> int:
    """The exit code of the whole run; verifying nothing is a mistake of usage."""
    if verify and not rows:
        return 2
    code = exit_code(mode, results, non_zero_on_fix)
    differs = rows is not None and not all(row.verdict.is_equal for row in rows)
    return 1 if code == 0 and differs else code


def _bad(message: str) -> None:
    raise typer.BadParameter(message)


def _mode(name: str | None, diff: bool, check: bool) -> Mode:
    if diff and check:
        _bad("--diff and --check exclude each other")
    if diff:
        return "diff"
    if check or name not in ("diff", "fix"):
        return "check"
    return "diff" if name == "diff" else "fix"


def _keep(item: Input, result: FileResult) -> FileResult:
    return result


def _run(
    inputs: Inputs, jobs: int, act: Callable[[Input, FileResult], FileResult], quiet: bool
) -> list[FileResult]:
    tasks = [item.task for item in inputs.inputs]
    results = []
    with _imports_frozen(), _progress(len(tasks), quiet) as advance:
        for item, result in zip(inputs.inputs, process_all(tasks, jobs), strict=True):
            results.append(act(item, result))
            advance()
    return sorted([*with_reachability(results), *inputs.failures], key=lambda result: result.path)


@contextmanager
def _imports_frozen() -> Iterator[None]:
    """What is imported stays: it is not to be looked through again for every file.

    Who calls this as a function, and holds nothing frozen, finds nothing frozen afterwards.
    """
    was_frozen = gc.get_freeze_count() > 0
    gc.freeze()
    try:
        yield
    finally:
        if not was_frozen:
            gc.unfreeze()


@contextmanager
def _progress(total: int, quiet: bool) -> Iterator[Callable[[], None]]:
    """A bar on a terminal; silence in a pipe and for a handful of files."""
    if quiet or total < 8 or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    # without a drawing thread: workers fork only in a process of one thread
    with Progress(console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task("migrating", total=total)
        yield lambda: bar.update(task, advance=1, refresh=True)


def _report(
    mode: Mode,
    paths: Sequence[str],
    chosen: Chosen,
    output: Output,
    results: Sequence[FileResult],
    rows: Sequence[Row] | None,
    code: int,
) -> None:
    if mode == "diff":
        _write_out("".join(unified_diff(result) for result in results))
    report = make_report(
        results,
        target=chosen.target or chosen.config_for(Path.cwd()).get("to", NEWEST),
        source=chosen.source or "auto",
        mode=mode,
        verification=None if rows is None else [row.as_json() for row in rows],
        verified=render_table(rows) if rows else "",
        color=output.color and output.file is None,
        quiet=output.quiet,
        verbose=output.verbose,
        with_statistics=output.statistics,
        exit_code=code,
    )
    text = FORMATS[output.format](report)
    if output.file is not None:
        _write_report(output.file, text)
    elif mode == "diff" or (mode == "fix" and STDIN in paths):
        sys.stderr.write(text)
    else:
        _write_out(text)
    if output.statistics and output.format in ("jsonl", "github", "junit"):
        sys.stderr.write("\n".join(statistics_table(results)) + "\n")


def _write_report(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--output-file {file}: {error.strerror or error}") from None


def _write_out(text: str) -> None:
    sys.stdout.buffer.write(text.encode("utf-8"))
    sys.stdout.buffer.flush()


def exit_code(mode: Mode, results: Sequence[FileResult], non_zero_on_fix: bool = False) -> int:
    """The exit code that the results alone lead to (notes never count)."""
    findings = [finding for result in results for finding in result.findings]
    changed = any(result.before != result.after for result in results)
    manual = any(is_manual(finding) for finding in findings)
    if any(result.error is not None for result in results):
        return 2
    left = {
        "check": any(is_open(finding) for finding in findings),
        "diff": changed or manual,
        "fix": manual or any(is_hidden(f) for f in findings) or (changed and non_zero_on_fix),
    }
    return int(left[mode])
