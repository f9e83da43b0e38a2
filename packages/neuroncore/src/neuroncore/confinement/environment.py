"""The environment variables that the code of users sees: a short list, and what a user names."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase

ENVIRONMENT = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "LANG", "LC_*", "LANGUAGE", "TZ", "TERM",
    "COLORTERM", "COLUMNS", "LINES", "NO_COLOR", "TMPDIR", "TEMP", "TMP", "XDG_CACHE_HOME",
    "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHON*", "PYTEST_*", "COVERAGE_*", "LD_LIBRARY_PATH", "DYLD_*",
    "SYSTEMROOT", "*_NUM_THREADS", "NKI_*", "NEURON_*", "JAX_*", "XLA_*", "CI",
)  # fmt: skip
"""Patterns of names: no key, token or address of a proxy."""


def allowed_environment(variables: Mapping[str, str], more: Collection[str] = ()) -> dict[str, str]:
    """The variables among ENVIRONMENT and those named in `more`."""
    patterns = (*ENVIRONMENT, *more)
    return {
        name: value
        for name, value in variables.items()
        if any(fnmatchcase(name, pattern) for pattern in patterns)
    }


def limit_environment(command: str, more: Collection[str]) -> None:
    """Remove the other variables of this process; name one on stderr where the program reads it."""
    kept = allowed_environment(os.environ, more)
    withheld = os.environ.keys() - kept.keys()

    class Environment(type(os.environ)):  # type: ignore[misc]
        def __getitem__(self, key: str) -> str:
            try:
                return super().__getitem__(key)
            except KeyError:
                if key in withheld:
                    withheld.remove(key)
                    sys.stderr.write(
                        f"{command}: the program reads the variable {key}, which is withheld; "
                        f"--env {key} passes it on\n"
                    )
                raise

    for name in withheld:
        del os.environ[name]
    os.environ.__class__ = Environment
