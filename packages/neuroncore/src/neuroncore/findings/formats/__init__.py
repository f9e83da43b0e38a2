"""The output formats by name: every module of this folder defines `render(report) -> str`.

A module is imported when its format is printed.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from neuroncore.findings.report import Report

_LISTED_FIRST = ("text", "concise", "json", "jsonl", "sarif", "github", "junit")


def _formats() -> dict[str, Callable[[Report], str]]:
    names = {module.name for module in pkgutil.iter_modules(__path__)}
    first = [name for name in _LISTED_FIRST if name in names]
    ordered = [*first, *sorted(names.difference(first))]
    return {name: partial(_render, name) for name in ordered}


def _render(name: str, report: Report) -> str:
    return importlib.import_module(f"{__name__}.{name}").render(report)


FORMATS: Mapping[str, Callable[[Report], str]] = MappingProxyType(_formats())
