"""The command: a table of subcommands, and how what goes wrong is said."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from neuroncore.errors import KernelError
from tokenplan import checker
from tokenplan.claims import ClaimError
from tokenplan.cli import check, codes, explain
from tokenplan.cli.kernels import KernelRunError, UsageError

_EXAMPLE = """\
examples:
  tokenplan explain attention.py:kernel --spec 'q=f32[128,64]' --spec 'k=f32[512,64]'
  tokenplan explain program.txt --output-format dot -o orders.dot
  tokenplan explain program.txt --output-format json -o plan.json
  tokenplan check plan.json --mutate --random 10000
  tokenplan explain-code W2

The exit code is 1 where something is wrong with the kernel or a claim, 2 for a mistake in the
options.
"""


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand: its name, what it is for, its options, what it does."""

    name: str
    help: str
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


COMMANDS = (
    Command("explain", "which operations of a kernel wait for which, and why",
            explain.add_options, explain.run),
    Command("check", "check a plan file with code that shares nothing with the analysis",
            checker.add_options, check.run),
    Command("explain-code", "what a code such as W2 means", codes.add_options, codes.run),
)  # fmt: skip


def make_parser() -> argparse.ArgumentParser:
    """The command line of tokenplan."""
    parser = argparse.ArgumentParser(
        "tokenplan",
        description="Which orders a kernel needs: proved, explained, scheduled, checked.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        added = commands.add_parser(
            command.name,
            help=command.help,
            description=f"{command.help[0].upper()}{command.help[1:]}.",
            epilog=_EXAMPLE,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        command.add_options(added)
        added.set_defaults(run=command.run, parser=added)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code, or SystemExit from argparse."""
    given = make_parser().parse_args(argv)
    try:
        code = given.run(given)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # who reads has seen enough; nothing is left to write at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (UsageError, ClaimError) as mistake:
        mistake.place = None  # of the command line, not of a program
        given.parser.exit(2, f"tokenplan: {mistake}\n")
    except KernelRunError as failed:
        sys.stderr.write(f"tokenplan: {failed}\n{failed.output}")
    except KernelError as error:
        sys.stderr.write(f"tokenplan: {type(error).__name__}: {error}\n")
    return 1
