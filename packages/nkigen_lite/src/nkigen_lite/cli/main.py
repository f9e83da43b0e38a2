"""The command: find the function, compile it, write the kernel, run it, explain it."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from neuroncore.commands.files import OutputError, write_output
from neuroncore.commands.function import Named, find_function, parse_name
from neuroncore.commands.parser import (
    add_confinement,
    add_output,
    add_output_format,
    add_specs,
    add_target,
    at_least,
    make_parser,
    parse,
)
from neuroncore.commands.reporting import add_report, write_report
from neuroncore.commands.streams import command_line
from neuroncore.errors import KernelError, ProgramError
from neuroncore.surface import DEFAULT_VERSION
from neuroncore.targets import resolve_target
from neuroncore.timeline import estimate
from nkigen_lite.cli.function import FunctionError, match_specs, users_code
from nkigen_lite.cli.generated_source import (
    Found,
    RunError,
    check_place,
    check_runtime,
    compare,
    headed,
    normal_inputs,
    verdict,
    write_constants,
)
from nkigen_lite.compiler.compile import WRITTEN, Compiled, check_version, compiled, rewritten
from nkigen_lite.compiler.report import explanation, passes_text
from nkigen_lite.frontend import trace
from nkigen_lite.tensors.spec import Spec

_EXAMPLE = """\
examples:
  nkigen mlp.py:mlp --spec 'x=f32[512,1024]' --spec 'w=f32[1024,4096]' -o mlp_kernel.py
  nkigen kernels.mlp:mlp --spec 'bf16[512,1024]' --spec 'bf16[1024,4096]' --target trn1 --nki 0.2
  nkigen mlp.py:mlp --spec … --run           execute the kernel here, compare it with NumPy
  nkigen mlp.py:mlp --spec … --explain       what was fused, what was not and why, what it costs

The kernel goes to FILE, or to stdout. What --run and --explain say goes to stdout where the kernel
goes to a file, else to stderr. A file that nkigen has written is written over; any other only with
--force. The exit code is 1 where the function has no kernel or the kernel does not run, 2 for a
mistake in the options.
"""


def _parser() -> argparse.ArgumentParser:
    """The command line of nkigen."""
    parser = make_parser(
        "nkigen", "Write an NKI kernel for a NumPy function.", _EXAMPLE, distribution="nkigen-lite"
    )
    add = parser.add_argument
    add("function", metavar="MODULE:FUNCTION", help="or FILE.py:FUNCTION; imported as it is")
    add_specs(
        parser,
        "shape and dtype of an argument, by name or in order: x=f32[1024,64], bf16[64], i32[]",
    )
    add_target(parser)
    add("--nki", default=DEFAULT_VERSION, metavar="VERSION",
        help=f"NKI version, one of {', '.join(WRITTEN)} (default {DEFAULT_VERSION})")  # fmt: skip
    add_output(parser, "where to write the kernel")
    add("--constants", type=Path, metavar="FILE",
        help="where to write arrays of more than 4 KiB that the function contains: inputs of the "
        "kernel, for np.load (default: that of -o, as .npz)")  # fmt: skip
    add("--force", action="store_true", help="write over a file that nkigen did not write")
    add("--run", action="store_true",
        help="execute the kernel under nki-run on standard normal arrays; say how far it is from "
        "NumPy in float64")  # fmt: skip
    add("--seed", type=at_least(0), default=0, help="of the arrays of --run (default 0)")
    add("--tolerance", type=at_least(0.0), metavar="ULPS",
        help="how far a result may be from NumPy under --run, in ulps of the largest element "
        "(default: 4 times NumPy's own error, and 4)")  # fmt: skip
    add("--explain", action="store_true",
        help="what each pass made, what was fused, what was not and why, the cost")  # fmt: skip
    add_report(parser)
    add_confinement(parser)
    add_output_format(
        parser, help="json: one object on stdout, with the source where no file is named"
    )
    return parser


@command_line("nkigen")
def main(argv: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code, or SystemExit from argparse."""
    parser = _parser()
    given = parse(parser, sys.argv[1:] if argv is None else argv)
    if argv is None:
        from neuroncore.confinement.supervision import confine_command  # ctypes, sockets

        confine_command(parser, given)
    try:
        named = parse_name(given.function)
        _check_options(given)
        with users_code(f"{named.source}, which is imported,"):
            function = find_function(named)
        if given.output is not None:
            check_place(given.output, function, given.force)
        specs = match_specs(function, given.spec)
    except KernelError as mistake:
        mistake.place = None  # of the command line, not of a program
        parser.exit(2, f"nkigen: {mistake}\n")
    except FunctionError as failed:
        _report(failed)
        return 1
    try:
        return _Job(given, named, function, specs).run()
    except ProgramError as ours:
        parser.exit(2, f"nkigen: our mistake, please report it with the function:\n{ours}\n")
    except OutputError as mistake:
        parser.exit(2, f"nkigen: {mistake}\n")
    except RunError as failed:
        sys.stderr.write(f"nkigen: {failed}\n{failed.output}")
    except (KernelError, FunctionError) as error:
        _report(error)
    return 1


def _check_options(given: argparse.Namespace) -> None:
    """Raises LaunchError for options that cannot be used with any function."""
    check_version(given.nki)
    resolve_target(given.target)
    if given.run:
        check_runtime()


@dataclasses.dataclass(frozen=True, slots=True)
class _Job:
    """One kernel to write, from what the command line says."""

    given: argparse.Namespace
    named: Named
    function: Callable[..., Any]
    specs: list[Spec]

    def run(self) -> int:
        given = self.given
        with users_code(str(self.named)):
            graph = trace(self.function, *self.specs, keeps_names=True)
        try:
            kernel = compiled(graph, resolve_target(given.target).name, given.nki)
        except KernelError:
            if given.explain:
                print(passes_text(rewritten(graph)), file=sys.stderr)
            raise
        text = headed(kernel, str(self.named), self.specs, self.constants)
        self.write(text)
        if kernel.constants and self.constants:
            write_constants(self.constants, kernel)
        report = self.found(kernel, text) if given.run else []
        write_report("nkigen", given, _results, kernel)
        _SAYS[given.output_format](self, kernel, text, report)
        return int(not all(found.agrees for found in report))

    @property
    def constants(self) -> Path | None:
        """The file of large constants."""
        output = self.given.output
        return self.given.constants or (output and output.with_suffix(".npz"))

    def write(self, text: str) -> None:
        """The kernel to its file, or to stdout; JSON has it in its record."""
        if self.given.output is not None:
            write_output("nkigen", "-o", self.given.output, text)
            return
        if self.given.output_format == "text":
            sys.stdout.write(text)

    def found(self, kernel: Compiled, text: str) -> list[Found]:
        """The findings of --run for each result."""
        arrays = normal_inputs(self.specs, self.given.seed)
        return compare(kernel, text, self.function, arrays, self.given.tolerance)

    def say_json(self, kernel: Compiled, text: str, report: list[Found]) -> None:
        """One object on stdout."""
        print(json.dumps(self.record(kernel, text, report), indent=1))

    def say_text(self, kernel: Compiled, _text: str, report: list[Found]) -> None:
        """The text of --explain and --run, on a stream beside the kernel's."""
        out = sys.stderr if self.given.output is None else sys.stdout
        if self.given.explain:
            print(kernel.explain(), file=out)
        for found in report:
            print(found, file=out)
        if report:
            print(verdict(report), file=out)

    def record(self, kernel: Compiled, text: str, report: list[Found]) -> dict[str, Any]:
        """The same for machines."""
        given = self.given
        made: dict[str, Any] = {
            "schema": "nkigen/1", "function": str(self.named), "kernel": kernel.program.name,
            "specs": list(map(str, self.specs)), "target": kernel.program.target,
            "nki": kernel.program.nki, "constants": {
                name: f"{a.dtype}{list(a.shape)}" for name, a in kernel.constants.items()
            }, "file": given.output and str(given.output),
            "stats": dataclasses.asdict(kernel.stats),
        }  # fmt: skip
        if given.output is None:
            made["source"] = text
        if given.run:
            made["run"] = {"seed": given.seed, "results": [_as_json(found) for found in report]}
        if given.explain:
            made["explain"] = explanation(kernel.passes, kernel.plan, kernel.program)
        return made


_SAYS: dict[str, Callable[[_Job, Compiled, str, list[Found]], None]] = {
    "json": _Job.say_json, "text": _Job.say_text,
}  # fmt: skip
"""--output-format → what is said of the kernel."""


def _results(kernel: Compiled) -> dict[str, Any]:
    """The contents of --report."""
    return {"timelines": [estimate(kernel.program)], "text": ("Passes", kernel.explain())}


def _as_json(found: Found) -> dict[str, Any]:
    array = found.array
    kind = {"dtype": str(array.dtype), "shape": array.shape}
    gaps = dataclasses.asdict(found.difference)
    finite = {k: "inf" if v == math.inf else v for k, v in gaps.items()}  # JSON has no infinity
    limit = {"agrees": found.agrees, "allowed": min(found.allowed, sys.float_info.max)}
    return {"name": found.name} | kind | finite | limit


def _report(error: KernelError | FunctionError) -> None:
    text = next(text for kind, text in _TEXTS if isinstance(error, kind))
    sys.stderr.write(f"nkigen: {text(error)}")


def _of_kernel(error: KernelError) -> str:
    if error.place is not None and error.place.file in (sys.argv[0], "<frozen runpy>"):
        error.place = None  # not a line of the user's
    return f"{type(error).__name__}: {error}\n"


_TEXTS: tuple[tuple[type[Exception], Callable[[Any], str]], ...] = (
    (KernelError, _of_kernel),
    (FunctionError, lambda error: f"{error}\n{error.lines()}"),
)
"""A KernelError as it reads; what the user's code raised with its own lines."""
