"""A command from its parsed line to its exit code.

0: nothing wrong; 1: findings, or an error in the user's program; 2: a mistake in the options, or
stdout cannot be written; 130: interrupted, also by SIGTERM; 141: the reader of stdout has left.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from neuroncore.commands.interruption import report_interruption, termination_interrupts
from neuroncore.commands.parser import Command, add_commands, parse
from neuroncore.commands.tracebacks import is_of_user, report
from neuroncore.errors import KernelError, OptionError, Place


@termination_interrupts()
def run_commands(
    parser: argparse.ArgumentParser,
    commands: Sequence[Command],
    words: Sequence[str] | None,
    usage_errors: Callable[[], tuple[type[Exception], ...]] = tuple,
    interrupted: str = "nothing was reported",
    max_lines: int | None = None,
) -> int:
    """Run the subcommand that `words` (None: the command line) begin with; the exit code.

    Errors go to stderr, the ones that `usage_errors` gives with exit code 2; they are cut to
    `max_lines`, where that is given, without the option `--verbose`. Raises SystemExit for options
    that the subcommand does not have, and for `--help`.
    """
    given = _parsed(parser, commands, sys.argv[1:] if words is None else words)
    if words is None and given.is_confined(given):
        from neuroncore.confinement.supervision import confine_command  # ctypes, sockets

        confine_command(parser, given)
    caller = KernelError("").place
    try:
        return given.run(given)
    except KeyboardInterrupt:
        return report_interruption(parser.prog, interrupted)
    except (OptionError, *usage_errors()) as mistake:
        if isinstance(mistake, KernelError):
            mistake.place = None  # of the command line, not of a program
        parser.exit(2, f"{parser.prog}: {mistake}\n")
    except Exception as error:
        return _failed(error, caller, parser.prog, given, max_lines)


def _failed(
    error: Exception, caller: Place | None, command: str, given: argparse.Namespace,
    max_lines: int | None,
) -> int:  # fmt: skip
    """Show what the user's program raised; raises what the command itself did."""
    if isinstance(error, KernelError):
        if error.place == caller:
            error.place = None  # the command itself: not a line of the user's
        sys.stderr.write(f"{command}: {_shown(error, given, max_lines)}")
    elif is_of_user(error):
        report(error)
    else:
        raise error
    return 1


def _parsed(
    parser: argparse.ArgumentParser, commands: Sequence[Command], words: Sequence[str]
) -> argparse.Namespace:
    parsers = add_commands(parser, commands, words)
    known = parsers.get(words[0]) if words else None
    return parser.parse_args(words) if known is None else parse(known, words[1:])


def _shown(error: KernelError, given: argparse.Namespace, max_lines: int | None) -> str:
    """The error in at most so many lines; the last one is the number of the others."""
    lines = _text(error).splitlines(keepends=True)
    if max_lines is not None and not given.verbose and len(lines) > max_lines:
        hidden = len(lines) - max_lines + 1
        lines[max_lines - 1 :] = [f"    ({hidden} more lines: --verbose)\n"]
    return "".join(lines)


def _text(error: KernelError) -> str:
    """The error, and the output of the program that failed, of errors that carry one."""
    output = getattr(error, "output", None)
    if output is not None:
        return f"{error}\n{output}"
    return f"{type(error).__name__}: {error}\n"
