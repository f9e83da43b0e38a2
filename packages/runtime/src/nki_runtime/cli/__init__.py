"""`nki-run`: run a Python program with a language of ours behind `import nki`."""

from nki_runtime.cli.main import main

__all__ = ["main"]
