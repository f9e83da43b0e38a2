"""The options of `check`, `diff` and `fix`, and the ones that other commands share."""

from __future__ import annotations

import argparse
from pathlib import Path

from neuroncore.commands.parser import add_color, add_output_file, add_output_format, at_least
from neuroncore.commands.reporting import add_report
from neuroncore.findings.formats import FORMATS
from neuroncore.surface import VERSIONS
from nki_migrate.verify.process import DEFAULT_MEBIBYTES, DEFAULT_SECONDS


def add_migration_options(parser: argparse.ArgumentParser) -> None:
    """Options of migration and its report; None where a configuration file may say it."""
    add_inputs(parser)
    _add_migration(parser)
    _add_search(parser)
    add_runs(parser)
    _add_report(parser)
    add_report(parser)


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Files and folders."""
    parser.add_argument("paths", nargs="+", metavar="PATH",
        help="files, folders (searched for .py), or - for stdin")  # fmt: skip
    parser.add_argument(
        "--notebooks", action="store_true", help="also the code cells of .ipynb files"
    )


def add_runs(parser: argparse.ArgumentParser) -> None:
    """Cases, and the child processes that run them."""
    add = parser.add_argument
    add("--cases", type=Path, metavar="FILE",
        help="cases: the old kernels run first, and what is seen counts as facts "
        "(default with --verify: cases.toml beside the input)")  # fmt: skip
    add("--timeout", type=at_least(0.1), default=DEFAULT_SECONDS, metavar="SECONDS",
        help="wall clock of one child process (default %(default)s)")  # fmt: skip
    add("--memory", type=at_least(64), default=DEFAULT_MEBIBYTES, metavar="MIB",
        help="memory limit of one child process (default %(default)s)")  # fmt: skip
    add("--no-cache", action="store_true",
        help="run again what was verified before and has not changed since")  # fmt: skip
    add("-j", "--jobs", type=at_least(1), metavar="N", help="processes (default: cores)")


def _add_migration(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--from", dest="source", metavar="VER",
        help="version of the input (default: auto, per kernel)")  # fmt: skip
    add("--to", dest="target", metavar="VER",
        help="target version, or auto: the pin on nki (default: " + VERSIONS[-1] + ")")  # fmt: skip
    add("--step", action="store_true", help="stop after the next version")
    add("--select", action="append", metavar="IDS",
        help="rule ids or prefixes, comma list; repeatable")  # fmt: skip
    add("--extend-select", action="append", metavar="IDS", help="added to --select")
    add("--ignore", action="append", metavar="IDS", help="rules that stay silent")
    add("--unsafe-fixes", action=argparse.BooleanOptionalAction,
        help="also apply edits that rest on an assumption")  # fmt: skip
    add("--nl", choices=("keep", "lower"),
        help="what to do with nl.load, nl.add, … (default: lower)")  # fmt: skip
    add("--block-dims", choices=("auto", "list", "fold"),
        help="how to remove block dimensions (default: auto)")  # fmt: skip
    add("--assume", action="append", metavar="FACT",
        help="'kernel.arg: shape=(S, 128), dtype=bf16'; repeatable")  # fmt: skip
    add("--assume-file", type=Path, metavar="FILE", help="assumptions, one per line")
    add("--facts", action="append", default=[], type=Path, metavar="FILE",
        help="facts of `nki-run --record`; repeatable")  # fmt: skip
    add("--todo", choices=("comment", "none"),
        help="leave a TODO above what was not converted (default: comment)")  # fmt: skip
    add("--all-or-nothing", action="store_true", default=None,
        help="leave a kernel untouched unless every construct of it converts")  # fmt: skip
    add("--partial", dest="all_or_nothing", action="store_false", help="convert what converts")
    add("--add-ignores", action="store_true",
        help="(fix, diff) add suppression comments for what is found, no edits")  # fmt: skip
    add("--verify", action="store_true",
        help="(fix, diff) run old, new and reference for kernels that have a case")  # fmt: skip
    add("--self-check", action=argparse.BooleanOptionalAction,
        help="run again on the output, fail if that changes it (default: if CI=true)")  # fmt: skip
    add("--output-dir", type=Path, metavar="DIR", help="(fix) write there instead of in place")
    add("--diff", action="store_true", help="(fix) do what the diff command does")
    add("--check", action="store_true", help="(fix) do what the check command does")


def _add_search(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--exclude", action="append", metavar="GLOB",
        help="instead of the default excludes; repeatable")  # fmt: skip
    add("--extend-exclude", action="append", metavar="GLOB",
        help="added to the excludes; repeatable")  # fmt: skip
    add("--no-gitignore", action="store_true", help="also search what git ignores")
    add("--stdin-filename", default="<stdin>", metavar="NAME", help="what to call the text of -")
    add("--config", type=Path, metavar="FILE", help="settings from this file only")
    add("--isolated", action="store_true", help="read no configuration file")


def _add_report(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_output_format(parser, tuple(FORMATS))
    add_output_file(parser)
    add("--statistics", action="store_true", help="counts per rule")
    add_color(parser)
    add("-q", "--quiet", action="store_true", help="only the closing line")
    add("-v", "--verbose", action="store_true",
        help="also what each edit rests on; (fix, diff) also the edits themselves")  # fmt: skip
    add("--exit-zero", action="store_true", help="0 where it would be 1")
    add("--exit-non-zero-on-fix", action="store_true", help="(fix) 1 when files changed")
