"""JSON and TOML of users: what cannot be parsed is a ValueError, in every case."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from typing import Any


def parse_json(text: str, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """The document. Raises ValueError, also for brackets nested too deeply."""
    return _parsed(json.loads, text, object_pairs_hook=pairs)


def parse_toml(text: str) -> dict[str, Any]:
    """The document. Raises ValueError, also for brackets nested too deeply."""
    return _parsed(tomllib.loads, text)


def _parsed(parse: Callable[..., Any], text: str, **options: Any) -> Any:
    try:
        return parse(text, **options)
    except RecursionError:
        raise ValueError("nested too deeply") from None
