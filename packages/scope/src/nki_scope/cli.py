"""`nki-scope`: opens pages."""

from __future__ import annotations

import argparse
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from neuroncore.commands.parser import Command, make_parser
from neuroncore.commands.running import run_commands

_EXAMPLES = """\
examples:
  nki-run --report softmax.html softmax.py   write a page
  nki-scope open softmax.html                show it in a browser
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that the command line names; its exit code."""
    parser = make_parser("nki-scope", "Show pages about runs of kernels.", _EXAMPLES)
    commands = [Command("open", "show a page in a browser", _page, _open)]
    return run_commands(parser, commands, argv)


def _page(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="a page that --report wrote")


def _open(given: argparse.Namespace) -> int:
    return 0 if webbrowser.open(given.file.resolve().as_uri()) else 1
