"""JSON and TOML of users: what cannot be parsed is a ValueError, in every case."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from typing import Any


def parse_json(text: str, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """The document. Raises ValueError with the place, also for brackets nested too deeply."""
    return _parsed(json.loads, text, object_pairs_hook=pairs)


def parse_toml(text: str) -> dict[str, Any]:
    """The document. Raises ValueError, also for brackets nested too deeply."""
    return _parsed(tomllib.loads, text)


def _parsed(parse: Callable[..., Any], text: str, **options: Any) -> Any:
    try:
        return parse(text, **options)
    except json.JSONDecodeError as wrong:
        place = f"line {wrong.lineno}, column {wrong.colno}"
        raise ValueError(f"{place}: {wrong.msg[:1].lower()}{wrong.msg[1:]}") from None
    except tomllib.TOMLDecodeError as wrong:
        what, _, place = str(wrong).rstrip(")").rpartition(" (at ")
        raise ValueError(f"{place}: {what[:1].lower()}{what[1:]}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError as wrong:
        if "digits" not in str(wrong):
            raise
        raise ValueError("a number has more digits than Python converts") from None
