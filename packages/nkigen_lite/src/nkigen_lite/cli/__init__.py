"""`nkigen`: a NumPy function as an NKI kernel, from the command line."""

from nkigen_lite.cli.main import main

__all__ = ["main"]
