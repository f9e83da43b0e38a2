"""HTML of results in notebooks, made by an installed package."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

GROUP = "nki_runtime.reporters"
"""Entry points of reporters (neuroncore.commands.reporting); `html_of` of its package is used."""


class ShownAsHtml:
    """A result that notebooks show as HTML where nki-scope is installed, else as text."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        return _html_of()(self)


@cache
def _html_of() -> Callable[[Any], str | None]:
    from importlib.metadata import entry_points  # 20 ms

    found = next((import_module(point.module) for point in entry_points(group=GROUP)), None)
    return getattr(found, "html_of", lambda value: None)
