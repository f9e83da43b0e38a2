"""The command line: `nki-migrate check | diff | fix | detect | rules | explain | verify`."""

from nki_migrate.cli.main import main

__all__ = ["main"]
