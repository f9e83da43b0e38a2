"""The entry point: commands, the default one, and what an exit code means."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from sys import argv

from neuroncore.commands.parser import Command, make_parser
from neuroncore.commands.running import run_commands
from neuroncore.commands.streams import command_line
from neuroncore.commands.suggestions import did_you_mean
from nki_migrate.cli.commands import (
    add_detect,
    add_draft_rules,
    add_explain,
    add_rules,
    detect,
    draft_rules,
    explain,
    rules,
)
from nki_migrate.cli.migrate import migrate
from nki_migrate.cli.options import add_migration_options
from nki_migrate.cli.pull_request import pull_request
from nki_migrate.cli.verify import add_verify, verify
from nki_migrate.facts.observed import FactsError
from nki_migrate.settings.request import ConfigError
from nki_migrate.verify.cases import CasesError

_EXAMPLES = """\
examples:
  nki-migrate check kernels/
  nki-migrate diff softmax.py | git apply
  nki-migrate fix kernels/ --to 0.7 --verify --output-dir migrated
  nki-migrate pr .
  nki-migrate detect kernels/
  nki-migrate rules --output-format md > rules.md
  nki-migrate explain NKI1131
  nki-migrate draft-rules api-0.6.json stubs/nki@0.7 --output-dir drafts
  nki-migrate verify softmax.py migrated/softmax.py --entry softmax_kernel

Without a command it is check. Exit codes: 0 nothing left to do (verify: equal), 1 something is
(verify: different, or a run failed), 2 bad arguments or a file that failed, 130 interrupted.
"""
COMMANDS = (
    Command("check", "report what there is to migrate; write nothing",
            add_migration_options, partial(migrate, "check")),
    Command("diff", "findings on stderr, a unified diff on stdout; write nothing",
            add_migration_options, partial(migrate, "diff")),
    Command("fix", "write the migrated files", add_migration_options, partial(migrate, "fix")),
    Command("pr", "migrate a folder in place; write a report in Markdown and tests that compare "
            "old and new, into its folder nki_migration", add_migration_options, pull_request),
    Command("detect", "one line per kernel: the NKI version it is written for (0.1/2.20: outputs "
            "are parameters; 0.1, 0.2 … 0.7, mixed, unknown), and why", add_detect, detect),
    Command("rules", "every rule: id, step, class, safety, title; md: the pages of all",
            add_rules, rules),
    Command("explain", "the page of a rule: old form, new form, safety, traps, how to suppress it",
            add_explain, explain),
    Command("draft-rules", "compare the public functions of two NKI versions, and draft what a new "
            "release needs: signatures, rules with examples, conformance rows, the support row",
            add_draft_rules, draft_rules),
    Command("verify", "run OLD, NEW and the case's NumPy reference in child processes, and compare",
            add_verify, verify),
)  # fmt: skip
_OWN_OPTIONS = ("--help", "-h", "--version")


@command_line("nki-migrate")
def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code, or SystemExit from argparse."""
    parser = make_parser(
        "nki-migrate",
        "Migrate NKI kernels from 0.1 (beta1) to 0.7, and check that old and new agree.",
        _EXAMPLES,
    )
    words = list(argv[1:] if arguments is None else arguments)
    names = [command.name for command in COMMANDS]
    if words and words[0] not in (*names, *_OWN_OPTIONS):
        if not _is_path_or_option(words[0]):
            near = did_you_mean(words[0], names)
            parser.error(f"{words[0]!r} is neither a command nor a path{near}")
        words = ["check", *words]
    return run_commands(
        parser, COMMANDS, words or ["--help"], lambda: (ConfigError, CasesError, FactsError),
        "every file is whole",
    )  # fmt: skip


def _is_path_or_option(word: str) -> bool:
    path = Path(word)
    return word[:1] == "-" or path.exists() or "/" in word or path.suffix in (".py", ".ipynb")
