"""`tokenplan`: which orders a kernel needs, from the command line."""

from tokenplan.cli.main import main

__all__ = ["main"]
