"""The output formats by name: every module of this folder defines `render(report) -> str`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from types import MappingProxyType

from neuroncore.findings.report import Report

_LISTED_FIRST = ("text", "concise", "json", "jsonl", "sarif", "github", "junit")


def _formats() -> dict[str, Callable[[Report], str]]:
    names = {module.name for module in pkgutil.iter_modules(__path__)}
    first = [name for name in _LISTED_FIRST if name in names]
    ordered = [*first, *sorted(names.difference(first))]
    return {name: importlib.import_module(f"{__name__}.{name}").render for name in ordered}


FORMATS: Mapping[str, Callable[[Report], str]] = MappingProxyType(_formats())
