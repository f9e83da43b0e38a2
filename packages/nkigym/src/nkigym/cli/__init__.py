"""`nkigym`: search over schedules, from the command line."""

from nkigym.cli.main import main

__all__ = [
    "main",
]
