"""The command: a table of subcommands, and how what goes wrong is said."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from neuroncore.errors import KernelError
from nkigym.cli import enumerate as enumeration

_EXAMPLE = """\
examples:
  nkigym enumerate --tiles 2,2,2
  nkigym enumerate --tiles 1,2,3 --transforms data-reuse --output-format json

The exit code is 1 where there is nothing to search or not everything was found, 2 for a mistake in
the options.
"""


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand: its name, what it is for, its options, what it does."""

    name: str
    help: str
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


COMMANDS = (
    Command("enumerate", "every program that transforms reach from a tiled matmul",
            enumeration.add_options, enumeration.run),
)  # fmt: skip


def make_parser() -> argparse.ArgumentParser:
    """The command line of nkigym."""
    parser = argparse.ArgumentParser(
        "nkigym",
        description="Certified search over schedules of NKI kernels.",
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
    except KeyboardInterrupt:
        sys.stderr.write("nkigym: interrupted; nothing was reported\n")
        return 130
    except KernelError as error:
        sys.stderr.write(f"nkigym: {type(error).__name__}: {error}\n")
        return 1
