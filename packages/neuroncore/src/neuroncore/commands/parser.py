"""Command lines: a parser with examples, and the subcommands of a table."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

TARGETS = "trn1|inf2|gen2, trn2|gen3 (default) or trn3|gen4"


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand: its name, its help, its options, and the function that runs it."""

    name: str
    help: str
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def make_parser(
    name: str, description: str, examples: str, usage: str | None = None
) -> argparse.ArgumentParser:
    """The parser of a command; `examples` are printed below its options as they are."""
    return argparse.ArgumentParser(
        name,
        usage=usage,
        description=description,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def add_commands(
    parser: argparse.ArgumentParser, commands: Sequence[Command], examples: str
) -> None:
    """Subcommands; a parsed line has `run` and `parser` of the one that it names."""
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in commands:
        added = subparsers.add_parser(
            command.name,
            help=command.help,
            description=f"{command.help[0].upper()}{command.help[1:]}.",
            epilog=examples,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        command.add_options(added)
        added.set_defaults(run=command.run, parser=added)


# -- options of several commands -------------------------------------------------------------------


def add_specs(parser: argparse.ArgumentParser, help: str) -> None:
    """`--spec`, once for each argument of a kernel."""
    parser.add_argument(
        "--spec", action="append", default=[], metavar="[NAME=]DTYPE[SHAPE]", help=help
    )


def add_output(parser: argparse.ArgumentParser, help: str, metavar: str = "FILE") -> None:
    """`-o FILE`, `--output FILE`."""
    parser.add_argument("-o", "--output", type=Path, metavar=metavar, help=help)


def add_output_format(
    parser: argparse.ArgumentParser,
    formats: Sequence[str] = ("text", "json"),
    help: str | None = None,
) -> None:
    """`--output-format`, the first of `formats` if it is left out."""
    parser.add_argument("--output-format", choices=tuple(formats), default=formats[0], help=help)


def positive(text: str) -> int:
    """A count of at least one. Raises ArgumentTypeError."""
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return number
