"""`nki-run`: run a Python program with a language of ours behind `import nki`."""

from __future__ import annotations

import argparse
import sys
from bdb import BdbQuit
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from neuroncore.commands.files import OutputError, naming_output
from neuroncore.commands.interruption import INTERRUPTED
from neuroncore.commands.reporting import finish_report, make_reporter
from neuroncore.commands.streams import command_line, is_of_stdout
from neuroncore.commands.tracebacks import render_usage, report, user_frames
from neuroncore.errors import KernelError, LaunchError
from neuroncore.machine.observe import watch_everywhere, watched_by
from neuroncore.notes import print_hints, print_notes
from neuroncore.python_source import UNPARSABLE, SourceError, check_source
from neuroncore.timeline import read_constants
from nki_runtime.cli.check import Checker, checker_of, exit_code
from nki_runtime.cli.comparison import compare, options_of, role_here
from nki_runtime.cli.dump import Dumper
from nki_runtime.cli.function import compare_with, function_of, run_case
from nki_runtime.cli.languages import choices, requests_of
from nki_runtime.cli.options import make_parser
from nki_runtime.cli.programs import Module, Program, WordsError, enter, script_of
from nki_runtime.profile import Profiler, read_profile
from nki_runtime.recording.instrument import instrumented
from nki_runtime.recording.recorder import Recorder
from nki_runtime.switch.choice import DEFAULT_BACKEND
from nki_runtime.switch.use import resolve_choice, use
from nki_runtime.trace.tracer import Tracer

_MISTAKES = (OutputError, SourceError, WordsError)
"""Exit code 2."""


@command_line("nki-run")
def main(argv: Sequence[str] | None = None) -> int:
    """Run the program that the command line names; returns its exit code, or raises SystemExit."""
    parser = make_parser()
    given = parser.parse_args(argv)
    program, args = _program(parser, given)
    try:
        checker = checker_of(given, program.source())
    except KernelError as mistake:
        parser.exit(2, f"nki-run: {render_usage(mistake)}\n")
    supervised = False
    if argv is None and given.backend != "neuron":  # a device is not beneath a folder
        from neuroncore.confinement.supervision import confine_command  # ctypes, sockets

        supervised = confine_command(parser, given, None if checker is None else checker.write)
    if checker is None:
        return _execute(parser, given, program, args, None)
    checker.start(supervised)
    if supervised:
        return _execute(parser, given, program, args, checker)
    try:
        code = _execute(parser, given, program, args, checker)
    except BaseException as stop:
        expected = exit_code(stop)
        if (code := checker.write(expected, ())) != expected:
            raise SystemExit(code) from None
        raise
    return checker.write(code, ())


def _execute(
    parser: argparse.ArgumentParser, given: argparse.Namespace, program: Program, args: list[str],
    checker: Checker | None,
) -> int:  # fmt: skip
    """Run the program with what the options request; 2 for a mistake in them."""
    try:
        if given.compare is not None:
            return _compare(parser, given, program)
        enter(program)
        watching = _Watching(parser, given, checker)
        _switch(given, program)
        watching.begin(program)
    except KernelError as mistake:
        return _mistaken(mistake, render_usage(mistake), checker)
    try:
        return _watched_run(parser, given, program, args, watching)
    except _MISTAKES as mistake:
        is_of_words = isinstance(mistake, WordsError)
        return _mistaken(mistake, render_usage(mistake) if is_of_words else str(mistake), checker)


def _mistaken(mistake: KernelError, text: str, checker: Checker | None) -> int:
    """Show a mistake in the options; the exit code."""
    sys.stderr.write(f"nki-run: {text}\n")
    if checker is not None:
        checker.failed(mistake)
    return 2


def _watched_run(
    parser: argparse.ArgumentParser,
    given: argparse.Namespace,
    program: Program,
    args: list[str],
    watching: _Watching,
) -> int:
    """Run the program and report what its watchers found; raises SystemExit if the program does."""
    try:
        status = _run(parser, given, program, args, watching)
    except _MISTAKES:
        raise
    except BaseException as stop:  # also of stdout, whose reader has left
        code = exit_code(stop)
        if watching.checker is not None and code:
            watching.checker.failed(stop)
        if watching.finish() and not code:
            raise SystemExit(1) from None
        raise
    has_errors = watching.finish()
    return status or int(has_errors)


class _Watching:
    """The observers of a run. Raises LaunchError for a check or file that is not available."""

    def __init__(
        self, parser: argparse.ArgumentParser, given: argparse.Namespace, checker: Checker | None
    ) -> None:
        if given.bound is not None:
            parser.error("--bound is what --compare allows: name what to compare with")
        self.checker = checker
        self.tracer = None if given.trace is None else Tracer(given.trace)
        self.dumper = None if given.dump is None else Dumper(given.dump)
        self.reporter = make_reporter("nki-run", given)
        if self.reporter is not None and given.results is not None:
            self.reporter.watcher.most_results = given.results
        self.reference = given.reference
        measured = None if given.profile is None else read_profile(given.profile)
        self.profiler = None if measured is None else Profiler(measured, given.constants)
        self.role = role_here()
        self._set_constants(given)
        if given.verbose:
            print_notes()
        if self.checker is None:
            print_hints()

    def _set_constants(self, given: argparse.Namespace) -> None:
        """Estimate with the constants of --constants. Raises LaunchError for what it is not."""
        if given.constants is None or self.profiler is not None:
            return
        page = None if self.reporter is None else self.reporter.watcher
        estimating = [watcher for watcher in (self.tracer, page) if watcher is not None]
        if not estimating:
            raise LaunchError("--constants is for estimates", expected="--profile or --trace")
        for watcher in estimating:
            watcher.constants = read_constants(given.constants)

    def begin(self, program: Program) -> None:
        """Watch from now on."""
        if self.checker is not None:
            self.checker.begin(program.source(), resolve_choice())
        page = None if self.reporter is None else self.reporter.watcher
        if self.reference is not None:
            compare_with(self.reference, page)
        for watcher in (self.tracer, self.profiler, self.dumper, self.role, page):
            if watcher is not None:
                watch_everywhere(watcher)

    def run_case(self, script: Path | None) -> None:
        """Run the case that is listed for the script, for a page of a run without kernels."""
        page = None if self.reporter is None else self.reporter.watcher
        if page is None or script is None or page.programs or page.left_out:
            return
        if (name := run_case(script)) is not None:
            sys.stderr.write(f"nki-run: no kernel ran: {name} ran on its case in cases.toml\n")

    def failed(self, error: BaseException) -> None:
        """Print the error that the program ended in, and show it on the page."""
        report(error)
        if self.checker is not None:
            self.checker.failed(error)
        if self.reporter is not None:
            self.reporter.add("error", error)

    def finish(self) -> bool:
        """Print what was found and write what was asked for; whether something is wrong."""
        has_findings = self.checker is not None and self.checker.finish()
        is_short = self.tracer is not None and self.tracer.finish()
        if self.role is not None:
            self.role.finish()
        differs = self.profiler is not None and self.profiler.finish()
        if self.reporter is not None:
            if self.checker is not None:
                self.reporter.add("findings", self.checker.findings)
            finish_report(self.reporter)
        return is_short or has_findings or differs


def _compare(parser: argparse.ArgumentParser, given: argparse.Namespace, program: Program) -> int:
    """Run the program twice with the options of this command line."""
    for name in ("record", "check", "output_file", "trace", "profile", "dump", "report"):
        if getattr(given, name) is not None:
            option = name.replace("_", "-")
            parser.error(f"--compare and --{option} exclude each other: run them one by one")
    bound = 1.0 if given.bound is None else given.bound
    if not bound >= 0:
        parser.error(f"--bound {bound:g}: expected a number of ulps, 0 or more")
    options = [] if given.backend == "auto" else ["--backend", given.backend]
    for name in ("nki", "target"):
        options += [] if getattr(given, name) is None else [f"--{name}", getattr(given, name)]
    options += [word for text in given.option for word in ("--option", text)]
    options += ["--shadow"] * given.shadow
    change = options_of(given.compare)
    changed = parser.parse_args([*options, *change])
    if choices(given, program) == choices(changed, program):
        raise LaunchError(
            f"--compare {given.compare} changes nothing: the program would be compared with itself",
            expected="another value than the one in force", operand="change",
        )  # fmt: skip
    words = given.script if given.module is None else ["-m", *given.module, *given.script]
    return compare(options, change, words, given.compare, bound)


def _run(
    parser: argparse.ArgumentParser,
    given: argparse.Namespace,
    program: Program,
    args: list[str],
    watching: _Watching,
) -> int:
    """Run the program and report the error that it ends in; its exit code."""
    try:
        with _recording(parser, given.record):
            program.run(args)
            watching.run_case(program.source())
    except KeyboardInterrupt as stop:
        watching.failed(stop)
        return INTERRUPTED
    except _MISTAKES:
        raise
    except BdbQuit:
        sys.stderr.write("nki-run: left the debugger; the program did not end\n")
        return 1
    except BaseException as error:
        if isinstance(error, SystemExit) or is_of_stdout(error):
            raise
        if isinstance(error, UNPARSABLE):
            _check_parsed(program, error)
        watching.failed(error)
        return 1
    return 0


def _check_parsed(program: Program, error: BaseException) -> None:
    """Raise SourceError where the error is of a program that Python does not read."""
    source = None if user_frames(error) else program.source()  # one that runs was parsed
    if source is not None and source.suffix not in (".zip", ".pyz"):
        check_source(source)


@contextmanager
def _recording(parser: argparse.ArgumentParser, file: Path | None) -> Iterator[None]:
    """Write the facts of what runs inside the block, also when it ends in an error."""
    if file is None:
        yield
        return
    if not file.parent.is_dir():
        parser.error(f"--record {file}: no such folder {file.parent}")
    recorder = Recorder()
    try:
        with instrumented(), watched_by(recorder):
            yield
    finally:
        with naming_output("--record", file):
            recorder.write(file)
        for kernel in recorder.silent():
            sys.stderr.write(
                f"nki-run: --record: nothing is known of kernel {kernel}: its source was neither "
                "run as a script nor imported\n"
            )


def _program(
    parser: argparse.ArgumentParser, given: argparse.Namespace
) -> tuple[Program, list[str]]:
    words = [*(given.module or []), *given.script]
    if given.module is None and words[:1] == ["--"]:
        words = words[1:]
    if not words:
        parser.error("no program given: name a SCRIPT, or a MODULE after -m")
    name, *args = words
    if given.module is not None:
        return Module(name), args
    function = function_of(name)
    script = function or script_of(name)
    source = script.source()
    if source is None or not source.is_file():
        what = name if function is None else function.named.where
        kind = "file" if function is None or what.endswith(".py") else "module"
        parser.error(f"can't open {what!r}: {_why_unopened(Path(what), kind)}")
    return script, args


def _why_unopened(path: Path, kind: str) -> str:
    if path.is_dir():
        return "this is a folder"
    return "not a regular file" if path.exists() else f"no such {kind}"


def _switch(given: argparse.Namespace, program: Program) -> None:
    """Set the switch for the rest of the process: threads and exit handlers run under it, too."""
    requests = requests_of(given, program)
    found = [request.backend for request in requests]
    if sys.stderr.isatty() and given.backend == "auto" and found not in ([None], [DEFAULT_BACKEND]):
        sys.stderr.write(f"nki-run: running as {' and '.join(map(str, found))}, as imported\n")
    for request in requests:
        use(request.backend, request.nki, request.target, shadow=given.shadow, **request.options)
