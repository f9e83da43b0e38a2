"""Command lines: a parser with examples, and the subcommands of a table."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, NoReturn

from neuroncore.commands.suggestions import did_you_mean

DEFAULT_SECONDS = 3600.0
"""Of code of users that no terminal can interrupt."""


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand: its name, its help, its options, and the function that runs it."""

    name: str
    help: str
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    is_confined: Callable[[argparse.Namespace], bool] | None = None
    """Whether a command line runs the code of users in a confined process; None: none does."""
    seconds: float = DEFAULT_SECONDS
    """The limit of a confined run."""


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Wraps a description of one line; examples stay as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        kind = super() if "\n" in text else super(argparse.RawDescriptionHelpFormatter, self)
        return kind._fill_text(text, width, indent)


class _Parser(argparse.ArgumentParser):
    """Prints descriptions and examples as they are, and a mistake without all the options."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named, formatter_class=_Formatter, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        message = _CHOICE.sub(_none_of, message)
        message = _NUMBER.sub(lambda found: f"{found[2]!r} is not a {_KINDS[found[1]]}", message)
        message = _VALUE.sub("a value is missing", message)
        message = _NO_VALUE.sub(r"it takes no value; got \1", message)
        if found := _UNKNOWN.match(message):
            message += did_you_mean(found[1], self._option_string_actions)
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        (file or sys.stderr).write(message)  # argparse's hides that stdout cannot be written


_UNKNOWN = re.compile(r"unrecognized arguments: (\S+)")
_NUMBER = re.compile(r"invalid (int|float) value: '(.{,40}).*'")
_KINDS = {"int": "whole number", "float": "number"}
_VALUE = re.compile(r"expected (?:at least )?one argument")
_NO_VALUE = re.compile(r"ignored explicit argument (.*)")
_CHOICE = re.compile(r"invalid choice: '(.*)' \(choose from (.*)\)")


def _none_of(found: re.Match[str]) -> str:
    """The message of argparse in our own form, with the nearest choice."""
    choices = [choice.strip(" '") for choice in found[2].split(",")]
    near = did_you_mean(found[1], choices)
    return f"{found[1]!r} is none of {', '.join(choices)}{near}"


class _Version(argparse.Action):
    """`--version`: the version of the distribution that has the command."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any,
        option_string: str | None = None,
    ) -> NoReturn:  # fmt: skip
        from importlib.metadata import version  # 20 ms

        print(parser.prog, version(str(self.const)))
        parser.exit()


def make_parser(
    name: str, description: str, examples: str, *,
    usage: str | None = None, distribution: str | None = None,
) -> argparse.ArgumentParser:  # fmt: skip
    """The parser of a command; `examples` are printed below its options as they are."""
    parser = _Parser(
        name,
        usage=usage,
        description=description,
        epilog=examples,
    )
    parser.add_argument(
        "--version", action=_Version, nargs=0, const=distribution or name, help="print the version"
    )
    return parser


def _never(given: argparse.Namespace) -> bool:
    return False


def add_commands(
    parser: argparse.ArgumentParser, commands: Sequence[Command], words: Sequence[str]
) -> Mapping[str, argparse.ArgumentParser]:
    """The parser of each subcommand; a line that it parses has its `run` and `parser`.

    Only the ones that `words` name get their options, whose functions may import much.
    """
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in commands:
        added = subparsers.add_parser(
            command.name,
            help=command.help,
            description=f"{command.help[0].upper()}{command.help[1:]}.",
            epilog=parser.epilog,
        )
        if command.name in words:
            command.add_options(added)
            if command.is_confined is not None:
                add_confinement(added, command.seconds)
        added.set_defaults(run=command.run, parser=added, is_confined=command.is_confined or _never)
    return subparsers.choices


def parse(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace:
    """Options and operands in any order; an unknown option is an error that names a similar one."""
    given, unknown = parser.parse_known_intermixed_args(words)
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return given


# -- options of several commands -------------------------------------------------------------------


def add_specs(parser: argparse.ArgumentParser, help: str) -> None:
    """`--spec`, once for each argument of a kernel."""
    parser.add_argument(
        "--spec", action="append", default=[], metavar="[NAME=]DTYPE[SHAPE]", help=help
    )


def add_target(
    parser: argparse.ArgumentParser, default: str | None = "trn2", note: str = ""
) -> None:
    """`--target`; a default of None is the target of the input."""
    mark = " (default)" if default else ""
    names = f"trn1|inf2|gen2, trn2|gen3{mark} or trn3|gen4"
    parser.add_argument("--target", default=default, help=names + note)


def add_output(parser: argparse.ArgumentParser, help: str, metavar: str = "FILE") -> None:
    """`-o FILE`, `--output FILE`."""
    parser.add_argument("-o", "--output", type=Path, metavar=metavar, help=help)


def add_progress(parser: argparse.ArgumentParser) -> None:
    """`--progress`: progress also where stderr is not a terminal."""
    parser.add_argument(
        "--progress", action="store_true", help="print progress also off a terminal, in lines"
    )


def add_output_format(
    parser: argparse.ArgumentParser,
    formats: Sequence[str] = ("text", "json"),
    help: str | None = None,
) -> None:
    """`--output-format`, the first of `formats` if it is left out."""
    parser.add_argument("--output-format", choices=tuple(formats), default=formats[0], help=help)


def add_output_file(parser: argparse.ArgumentParser) -> None:
    """`--output-file FILE`."""
    parser.add_argument("--output-file", type=Path, metavar="FILE", help="where the report goes")


def add_color(parser: argparse.ArgumentParser) -> None:
    """`--color`, as `use_color` reads it."""
    parser.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto",
        help="colours; auto: on a terminal or with FORCE_COLOR, not with NO_COLOR",
    )  # fmt: skip


def add_confinement(
    parser: argparse.ArgumentParser, default_seconds: float = DEFAULT_SECONDS
) -> None:
    """`--timeout`, `--memory`, `--env` and `--unconfined`."""
    default = "none"
    if default_seconds < inf:
        default = f"{default_seconds:g}, or none where stdin is a terminal"
    group = parser.add_argument_group("limits of the code that runs")
    group.add_argument(
        "--timeout", type=at_least(0.1), metavar="SECONDS",
        help=f"stop it then (default: {default})",
    )  # fmt: skip
    group.add_argument(
        "--memory", type=at_least(64), default=0, metavar="MIB", help="default: what there is"
    )
    group.add_argument(
        "--env", action="append", default=[], metavar="NAME",
        help="pass on this environment variable besides the usual ones; repeatable",
    )  # fmt: skip
    group.add_argument(
        "--unconfined", action="store_true",
        help="run it as python does: it may write everywhere and use the network",
    )  # fmt: skip
    parser.set_defaults(default_seconds=default_seconds)


MOST_ELEMENTS = 2**48
"""Of an array: more bytes than any computer or device has, for every dtype."""
MOST = 10**9
"""Seconds, mebibytes and counts that the interfaces of the system take."""


def at_least(least: float) -> Callable[[str], float]:
    """The type of an option that is a number up to MOST; a whole one if `least` is."""

    def number(text: str) -> float:
        try:
            value = type(least)(text)
        except ValueError:
            value = -inf
        if not (least <= value <= MOST or text == "inf"):
            kind = "whole number" if isinstance(least, int) else "number"
            what = f"{text[:40]!r} is not a {kind} of at least {least} and at most {MOST}"
            raise argparse.ArgumentTypeError(what)
        return value

    return number


_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|h)")
_SECONDS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


def duration(text: str) -> float | None:
    """The seconds of a text such as `90s`, `1.5min` or `200ms`; None for another text."""
    found = _TIME.fullmatch(text)
    return None if found is None else float(found[1]) * _SECONDS[found[2]]


def seconds(text: str) -> float:
    """The seconds of an option such as `90s`, for argparse; 0 is not a time."""
    found = duration(text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time, such as 90s or 2min")
    return found
