"""The entry point: commands, the default one, and what an exit code means.

0 nothing left to do, 1 something is, 2 wrong arguments or a file that failed, 130 interrupted.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import typer
from typer.core import TyperGroup

from neuroncore.commands.running import INTERRUPTED
from nki_migrate.cli.commands import detect, explain, rules
from nki_migrate.cli.migrate import migrate
from nki_migrate.cli.verify import verify
from nki_migrate.facts.observed import FactsError
from nki_migrate.settings.request import ConfigError
from nki_migrate.verify.cases import CasesError

_DEFAULT = "check"
_OWN_OPTIONS = ("--help", "-h", "--version")


class _Commands(TyperGroup):
    """`nki-migrate kernels/` means `nki-migrate check kernels/`; errors become exit codes here."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default command first when no command is named."""
        if args and args[0] not in self.commands and args[0] not in _OWN_OPTIONS:
            args = [_DEFAULT, *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print("interrupted; every file is whole", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
        except (ConfigError, CasesError, FactsError) as error:
            print(f"nki-migrate: {error}", file=sys.stderr)
            raise typer.Exit(2) from None


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nki-migrate {version('nki-migrate')}")
        raise typer.Exit


@app.callback()
def _root(
    _version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Migrate NKI kernels from 0.1 (beta1) to 0.6, and check that old and new agree.

    Exit codes: 0 nothing left to do, 1 something is, 2 bad arguments or a file that failed,
    130 interrupted.
    """


_HELP = {
    "check": "Report what there is to migrate; write nothing.\n\n"
    "Example: nki-migrate check kernels/",
    "diff": "Findings on stderr, a unified diff on stdout; write nothing.\n\n"
    "Example: nki-migrate diff softmax.py | git apply",
    "fix": "Write the migrated files.\n\n"
    "Example: nki-migrate fix kernels/ --to 0.6 --verify --output-dir migrated",
}
for _name, _help in _HELP.items():
    app.command(_name, help=_help)(migrate)
app.command("detect")(detect)
app.command("rules")(rules)
app.command("explain")(explain)
app.command("verify")(verify)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code (SystemExit)."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # a kill ends workers, too
    app(sys.argv[1:] if arguments is None else list(arguments))
