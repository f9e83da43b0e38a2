"""The command: a table of subcommands, and how what goes wrong is said."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from neuroncore.errors import KernelError
from nkigym.cli import enumerate as enumeration
from nkigym.cli import stored
from nkigym.cli import tune as tuning

_EXAMPLE = """\
examples:
  nkigym enumerate --tiles 2,2,2
  nkigym enumerate --function rmsnorm_matmul --tiles 1,1,2 --transforms data-reuse,call-reuse
  nkigym enumerate --tiles 1,2,3 --transforms data-reuse --output-format json
  nkigym tune mlp.py:mlp --spec 'x=f32[512,1024]' --spec 'w=f32[1024,4096]' --budget 60s -o mlp_k.py
  nkigym tune mlp.py:mlp --spec … --budget 2000 --strategy beam --store found.db
  nkigym best found.db --number 3
  nkigym replay found.db
  nkigym export found.db -o mlp_k.py

The exit code is 1 where there is nothing to search, not everything was found or kept, or a check
fails; 2 for a mistake in the options.
"""


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand: its name, what it is for, its options, what it does."""

    name: str
    help: str
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


COMMANDS = (
    Command("enumerate", "every program that transforms reach from a tiled function",
            enumeration.add_options, enumeration.run),
    Command("tune", "the fastest schedule of a function or kernel, proved and as source",
            tuning.add_options, tuning.run),
    Command("show", "what a store holds", stored.add_show, stored.show),
    Command("best", "the fastest schedules of a kernel in a store", stored.add_best, stored.best),
    Command("replay", "take, prove and price a stored schedule anew",
            stored.add_replay, stored.replay),
    Command("export", "a stored schedule's kernel, program or steps",
            stored.add_export, stored.export),
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
    caller = KernelError("").place
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
        if error.place == caller:
            error.place = None  # the command itself: no line of the user's
        sys.stderr.write(f"nkigym: {type(error).__name__}: {error}\n")
        return 1
