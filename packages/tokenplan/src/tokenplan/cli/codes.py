"""`tokenplan explain-code`: the page of a diagnostic code."""

from __future__ import annotations

import argparse

from tokenplan.report.codes import PAGES


def add_options(parser: argparse.ArgumentParser) -> None:
    """The code itself."""
    parser.add_argument("code", choices=PAGES, help=f"one of {', '.join(PAGES)}", metavar="CODE")


def run(given: argparse.Namespace) -> int:
    """Prints the page."""
    print(PAGES[given.code].text())
    return 0
