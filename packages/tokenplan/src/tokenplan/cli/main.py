"""The command: a table of subcommands, and how what goes wrong is said."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from types import ModuleType
from typing import TYPE_CHECKING

from neuroncore.commands.parser import Command, add_output_format, make_parser
from neuroncore.commands.running import run_commands
from neuroncore.commands.streams import command_line
from neuroncore.errors import LaunchError

if TYPE_CHECKING:
    from tokenplan.checker import Finding

_EXAMPLE = """\
examples:
  tokenplan explain attention.py:kernel --spec 'q=f32[128,64]' --spec 'k=f32[512,64]'
  tokenplan explain program.txt --output-format dot -o orders.dot
  tokenplan explain program.txt --output-format json -o plan.json
  tokenplan explain kernel.tileirbc --rewrite needed.tileirbc --compile sm_90
  tokenplan check plan.json --mutate --random 10000
  tokenplan sweep kernels.py:gemm --set tile=64,128 --target sm_90 --jobs 2
  tokenplan explain-code W2

The exit code is 1 where something is wrong with the kernel or a claim, 2 for a mistake in the
options.
"""


# The modules of subcommands import NumPy and the timeline: 0.3 s of CPU time.


def _explain() -> ModuleType:
    from tokenplan.cli import explain

    return explain


def _sweep() -> ModuleType:
    from tokenplan.cli import sweep

    return sweep


def _add_check(parser: argparse.ArgumentParser) -> None:
    from tokenplan import checker

    checker.add_options(parser)


def _add_code(parser: argparse.ArgumentParser) -> None:
    from tokenplan.report.codes import PAGES

    parser.add_argument("code", choices=PAGES, help=f"one of {', '.join(PAGES)}", metavar="CODE")
    add_output_format(parser)


def _print_page(given: argparse.Namespace) -> int:
    from tokenplan.report.codes import PAGES

    page = PAGES[given.code]
    print(json.dumps(asdict(page), indent=1) if given.output_format == "json" else page.text())
    return 0


def _check(given: argparse.Namespace) -> int:
    """Prints the report; 1 where something is wrong, 2 for a file that is not a plan file."""
    from tokenplan import checker

    return checker.run(given, _wrong_key)


def _wrong_key(text: str) -> Iterator[Finding]:
    """E4 where the key is not that of the kernel and the claims in the file, names left out."""
    from tokenplan.checker import Finding
    from tokenplan.graph.canonical_key import key_of
    from tokenplan.report import plan_file

    stated = json.loads(text)["key"]
    try:
        computed = key_of(plan_file.read(text)[0])
    except LaunchError as damaged:
        yield Finding("E4", f"the key cannot be computed: {damaged.what}, {damaged.got}")
        return
    if computed != stated:
        yield Finding("E4", f"the key is {stated}, but the kernel and its claims have {computed}")


def _always(given: argparse.Namespace) -> bool:
    return True


def _is_local(given: argparse.Namespace) -> bool:
    return given.ray is None


COMMANDS = (
    Command("explain", "which operations of a kernel wait for which, and why",
            lambda parser: _explain().add_options(parser), lambda given: _explain().run(given),
            _always),
    Command("check", "check a plan file with code that shares nothing with the analysis",
            _add_check, _check),
    Command("sweep", "compile only the parameters of a Tile IR kernel that can win",
            lambda parser: _sweep().add_options(parser), lambda given: _sweep().run(given),
            _is_local),
    Command("explain-code", "what a code such as W2 means", _add_code, _print_page),
)  # fmt: skip


def _usage_errors() -> tuple[type[Exception], ...]:
    from tokenplan.elision.claims import ClaimError
    from tokenplan.executors import ExecutorError
    from tokenplan.tile_ir.bytecode import BytecodeError
    from tokenplan.tile_ir.results import SweepError

    return ClaimError, BytecodeError, SweepError, ExecutorError


@command_line("tokenplan")
def main(argv: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code, or SystemExit from argparse."""
    parser = make_parser(
        "tokenplan", "Which orders a kernel needs: proved, explained, scheduled, checked.", _EXAMPLE
    )
    return run_commands(parser, COMMANDS, argv, _usage_errors)
