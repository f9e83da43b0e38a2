"""`nki-run`: run a Python program with a language of ours behind `import nki`."""

from __future__ import annotations

import argparse
import sys
from bdb import BdbQuit
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import get_type_hints

from neuroncore.checks import CHECKS
from neuroncore.commands.files import OutputError, naming_output
from neuroncore.commands.interruption import INTERRUPTED
from neuroncore.commands.parser import add_confinement, add_output_format, add_target
from neuroncore.commands.parser import make_parser as parser_of
from neuroncore.commands.reporting import add_report, finish_report, make_reporter
from neuroncore.commands.tracebacks import render_usage, report
from neuroncore.errors import KernelError, LaunchError
from neuroncore.findings.formats import FORMATS
from neuroncore.machine.observe import watch_everywhere, watched_by
from neuroncore.notes import print_hints, print_notes
from neuroncore.options import Options
from neuroncore.timeline import read_constants
from nki_runtime.cli.check import Checker
from nki_runtime.cli.comparison import compare, options_of, role_here
from nki_runtime.cli.dump import Dumper
from nki_runtime.cli.function import compare_with, function_of, run_case
from nki_runtime.cli.languages import choices, requests_of
from nki_runtime.cli.programs import Module, Program, Script, enter
from nki_runtime.profile import Profiler, read_profile
from nki_runtime.recording.instrument import instrumented
from nki_runtime.recording.recorder import Recorder
from nki_runtime.switch.choice import DEFAULT_BACKEND
from nki_runtime.switch.use import resolve_choice, use
from nki_runtime.trace.tracer import Tracer

_EXAMPLE = """\
examples:
  nki-run softmax.py                          as the program's imports say, on a trn2
  nki-run --nki 0.2 --target trn1 softmax.py  another version, another device
  nki-run --nki auto softmax.py               the version that its kernels are written for
  nki-run --option uninitialized=zero softmax.py --rows 128
  nki-run -m kernels.bench --rows 128         a module, as with python -m
  nki-run softmax.py:softmax 'x=f32[256,512]' one function, on an array of this shape
  nki-run --backend nkigen-lite mlp.py:mlp 'f32[64,128]' 'w=f32[128,256]'
                                              a NumPy function, as the kernel made of it
  nki-run --record facts.json softmax.py      what nki-migrate --facts may rest edits on
  nki-run --trace softmax.svg softmax.py      where the time of its kernels would go
  nki-run --report softmax.html softmax.py    the same with source and memory, as one page
  nki-run --profile out softmax.py            its time on a device, beside the estimate
  nki-run --check memory,capacity softmax.py  what runs here and may fail on a device
  nki-run --dump tensors softmax.py           what every tensor of its kernels held, as .npz files
  nki-run --compare precise=0 softmax.py      the first instruction whose result that changes

Everything after SCRIPT or MODULE goes to the program. After FILE.py:FUNCTION or MODULE:FUNCTION
come its arguments, by name or in order: DTYPE[SHAPE] is an array of standard normal numbers (the
same ones each time), FILE.npy what it holds, all else a Python number or text. The exit code is the
program's: 1 after an error in a kernel, or where --check or --compare found something; 2 for a
mistake in the options of nki-run itself.
Where an option is left out, NKI_RUNTIME, NKI_RUNTIME_VERSION, NEURON_PLATFORM_TARGET_OVERRIDE,
NKI_PRECISE_FP and NKI_SIMULATOR are read.
"""


def make_parser() -> argparse.ArgumentParser:
    """The command line of nki-run."""
    parser = parser_of(
        "nki-run",
        "Run a program that imports nki (or neuronxcc.nki) on this computer.",
        _EXAMPLE,
        distribution="nki-runtime",
        usage="nki-run [options] SCRIPT [ARGS ...]\n       nki-run [options] -m MODULE [ARGS ...]\n"
        "       nki-run [options] FILE.py:FUNCTION [[NAME=]VALUE ...]",
    )
    _add_machine(parser)
    _add_observers(parser)
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="print, once each, what the kernels request and what changes nothing here",
    )
    add_report(parser)
    parser.add_argument(
        "--reference", metavar="FILE.py:FUNCTION",
        help="with --report: a function of the same arguments; the page has the ulps from it",
    )  # fmt: skip
    add_confinement(parser)
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.add_argument("script", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def _add_machine(parser: argparse.ArgumentParser) -> None:
    """Options of the machine that the kernels run on, and of its version."""
    parser.add_argument(
        "--backend",
        default="auto",
        metavar="NAME",
        help="auto (default: what the program imports: neuronxcc is beta1, nki is beta2), "
        "beta1, beta2, nkigen-lite for NumPy functions, or neuron for the vendor's package",
    )
    parser.add_argument(
        "--nki",
        metavar="VERSION",
        help="NKI version, such as 0.6, or auto: what the kernels are written for",
    )
    add_target(parser, default=None)
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a modelling assumption of the machine; may be repeated: "
        + ", ".join(get_type_hints(Options)),
    )
    parser.add_argument(
        "--shadow", action="store_true", help="hide an installed vendor package for this run"
    )


def _add_observers(parser: argparse.ArgumentParser) -> None:
    """Options of observers of a run, and of their files."""
    parser.add_argument(
        "--record",
        metavar="FACTS.json",
        type=Path,
        help="write down what every expression of the kernels was: shape, dtype, memory, value",
    )
    parser.add_argument(
        "--check",
        metavar="NAME[,NAME ...]",
        help="look for what runs here and fails elsewhere: "
        + "; ".join(f"{check.name} ({check.proves})" for check in CHECKS.values())
        + "; all of them: all",
    )
    add_output_format(parser, tuple(FORMATS), help="of the findings of --check (default: text)")
    parser.add_argument(
        "--trace",
        metavar="FILE",
        type=Path,
        help="estimate the time of every kernel and write the timelines: FILE.svg for a browser, "
        "FILE.parquet as the profiler's table, any other FILE for ui.perfetto.dev",
    )
    parser.add_argument(
        "--profile",
        metavar="FILE",
        type=Path,
        help="compare the estimate of a kernel with a profile that was captured of it, line by "
        "line: the profiler's folder of Parquet tables, its JSON, or a Perfetto trace",
    )
    parser.add_argument(
        "--constants",
        metavar="FILE",
        type=Path,
        help="constants of the estimates of --trace, --report and --profile; with --profile, they "
        "are fitted to it and written there",
    )
    parser.add_argument(
        "--dump",
        metavar="DIR",
        type=Path,
        help="write what every tensor of the kernels held, by variable or name=, as .npz files",
    )
    parser.add_argument(
        "--compare",
        metavar="NAME=VALUE",
        help="run twice, as it is and with nki=, target= or an option changed, and name the first "
        "instruction whose result departs",
    )
    parser.add_argument(
        "--bound",
        metavar="ULPS",
        type=float,
        help="what --compare allows, in units of the last place of the result's dtype (default 1)",
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program that the command line names; returns its exit code, or raises SystemExit."""
    parser = make_parser()
    given = parser.parse_args(argv)
    program, args = _program(parser, given)
    if argv is None and given.backend != "neuron":  # a device is not beneath a folder
        from neuroncore.confinement.supervision import confine_command  # ctypes, sockets

        confine_command(parser, given)
    try:
        if given.compare is not None:
            return _compare(parser, given, program)
        enter(program)
        watching = _Watching(parser, given)
        _switch(given, program)
        watching.begin(program)
    except KernelError as mistake:
        parser.exit(2, f"nki-run: {render_usage(mistake)}\n")
    try:
        return _watched_run(parser, given, program, args, watching)
    except OutputError as mistake:
        parser.exit(2, f"nki-run: {mistake}\n")


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
    except SystemExit as stop:
        if watching.finish() and not stop.code:
            raise SystemExit(1) from None
        raise
    has_errors = watching.finish()
    return status or int(has_errors)


class _Watching:
    """The observers of a run. Raises LaunchError for a check or file that is not available."""

    def __init__(self, parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
        if given.bound is not None:
            parser.error("--bound is what --compare allows: name what to compare with")
        self.checker = None if given.check is None else Checker(given.check, given.output_format)
        self.tracer = None if given.trace is None else Tracer(given.trace)
        self.dumper = None if given.dump is None else Dumper(given.dump)
        self.reporter = None if given.report is None else make_reporter("nki-run", given.report)
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
    for name in ("record", "check", "trace", "profile", "dump", "report"):
        if getattr(given, name) is not None:
            parser.error(f"--compare and --{name} exclude each other: run them one by one")
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
    except OutputError:
        raise
    except BdbQuit:
        sys.stderr.write("nki-run: left the debugger; the program did not end\n")
        return 1
    except Exception as error:
        watching.failed(error)
        return 1
    return 0


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
    script = function or Script(name)
    source = script.source()
    if source is None or not source.is_file():
        what = name if function is None else function.named.where
        kind = "file" if function is None or what.endswith(".py") else "module"
        reason = "this is a folder" if Path(what).is_dir() else f"no such {kind}"
        parser.error(f"can't open {what!r}: {reason}")
    return script, args


def _switch(given: argparse.Namespace, program: Program) -> None:
    """Set the switch for the rest of the process: threads and exit handlers run under it, too."""
    requests = requests_of(given, program)
    found = [request.backend for request in requests]
    if sys.stderr.isatty() and given.backend == "auto" and found not in ([None], [DEFAULT_BACKEND]):
        sys.stderr.write(f"nki-run: running as {' and '.join(map(str, found))}, as imported\n")
    for request in requests:
        use(request.backend, request.nki, request.target, shadow=given.shadow, **request.options)
