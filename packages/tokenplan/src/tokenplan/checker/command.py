"""`tokenplan check`: check a plan file with code that shares nothing with what wrote it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tokenplan.checker.errors import PlanFileError, TooBigError
from tokenplan.checker.findings import MEANINGS, Finding
from tokenplan.checker.plan_check import CheckOptions, Report, check_plan
from tokenplan.checker.reading import read_plan_file

_EXAMPLE = """\
examples:
  tokenplan check plan.json                      edges, claims and plan at the kernel's own sizes
  tokenplan check plan.json --mutate             also delete every edge and wait: is each needed?
  tokenplan check plan.json --random 10000       play the plan under more random latencies
  tokenplan check plan.json --trips k=4          a kernel too big to unroll, with fewer iterations
  tokenplan check tiny.json --interleavings      every way in which the queues can run

The file alone is read: bytes are counted by plain loops, orders by unrolling every iteration. The
exit code is 0 where nothing is wrong, 1 where something is, 2 for a file that is not a plan file, a
kernel too big to unroll or a mistake in the options.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `tokenplan check`."""
    add = parser.add_argument
    add("plan", type=Path, metavar="PLAN.json", help="a plan file, schema tokenplan/1")
    add("--random", type=_natural, default=100, metavar="N",
        help="play the plan under N random latencies (default 100)")  # fmt: skip
    add("--seed", type=_natural, default=0, help="of the latencies (default 0)")
    add("--mutate", action="store_true",
        help="delete each kept edge and each wait: W5 where nothing goes wrong")  # fmt: skip
    add("--interleavings", action="store_true", help="go through all interleavings of a tiny plan")
    add("--trips", action="append", default=[], type=_trip, metavar="LOOP=N",
        help="check the edges with fewer iterations of a loop; the report says so")  # fmt: skip
    add("--output-format", choices=("text", "json"), default="text")


def make_parser() -> argparse.ArgumentParser:
    """The command line of `tokenplan check` on its own."""
    parser = argparse.ArgumentParser(
        "tokenplan check",
        description="Check a plan file, sharing no code with the analysis that wrote it.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_options(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code, or SystemExit from argparse."""
    return run(make_parser().parse_args(argv))


def run(
    given: argparse.Namespace, further: Callable[[str], Iterable[Finding]] = lambda text: ()
) -> int:
    """Check the file that the options name and print the report; the exit code.

    `further` finds more in the text of a file that is a plan file.
    """
    options = CheckOptions(
        given.random, given.seed, given.mutate, given.interleavings, dict(given.trips)
    )
    try:
        content = _text(given.plan)
        report = check_plan(read_plan_file(content), options, _say_progress)
        report.findings += further(content)
    except (PlanFileError, TooBigError) as error:
        _say_progress("")
        print(printable([f"tokenplan check: {given.plan}: {error}"]), file=sys.stderr)
        return 2
    _say_progress("")
    print(json.dumps(as_json(report), indent=1) if given.output_format == "json" else text(report))
    return 1 if report.findings else 0


def text(report: Report) -> str:
    """The report for people."""
    found = len(report.findings)
    lines = [
        f"{report.kernel}: {report.instances} instances, {report.conflicts} pairs that conflict, "
        f"{report.kept} kept edges, {report.waits} waits",
        *(f"  {note}" for note in report.notes),
        *(str(finding) for finding in report.findings),
        f"{found} finding{'s' if found != 1 else ''}" if found else "all of it holds",
    ]
    codes = sorted({finding.code for finding in report.findings})
    more = [f"(tokenplan explain-code {codes[0]}: what to do about it)"] if codes else []
    return printable([*lines, *(f"  {code}: {MEANINGS[code]}" for code in codes), *more])


def printable(lines: Iterable[str]) -> str:
    """The lines without what a terminal would obey; names in a file may be anything."""
    return "\n".join(
        "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in line) for line in lines
    )


def as_json(report: Report) -> dict[str, object]:
    """The report for machines."""
    return {
        "schema": "tokenplan-check/1", "kernel": report.kernel, "ok": not report.findings,
        "instances": report.instances, "conflicts": report.conflicts, "kept": report.kept,
        "waits": report.waits, "notes": report.notes,
        "findings": [{"code": f.code, "text": f.text, **f.detail} for f in report.findings],
    }  # fmt: skip


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as wrong:
        raise PlanFileError("", f"cannot be read: {wrong.strerror}") from None
    except UnicodeDecodeError as wrong:
        raise PlanFileError("", f"byte {wrong.start} is not UTF-8") from None


def _say_progress(what: str) -> None:
    """One line on a terminal, overwritten; nothing in a pipe."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{what and what + ' …'}")
        sys.stderr.flush()


MOST_DIGITS = 9


def _natural(given: str) -> int:
    if not given.isdecimal() or len(given) > MOST_DIGITS:
        what = f"{given[:40]!r} is not a whole number of at most {MOST_DIGITS} digits"
        raise argparse.ArgumentTypeError(what)
    return int(given)


def _trip(given: str) -> tuple[str, int]:
    loop, _, count = given.rpartition("=")
    if not loop:
        raise argparse.ArgumentTypeError(f"{given[:40]!r} is not LOOP=N, such as i=4")
    return loop, _natural(count)
