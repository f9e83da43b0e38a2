"""Files of users: what cannot be read or parsed is an OSError, or a ValueError in our words."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


def read_utf8(file: Path) -> str:
    """The text of a file. Raises OSError, and ValueError with the line that is not UTF-8."""
    raw = file.read_bytes()
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as wrong:
        line = raw.count(b"\n", 0, wrong.start) + 1
        raise ValueError(f"line {line}: byte 0x{raw[wrong.start]:02x} is not UTF-8") from None


def read_array(file: str | Path) -> np.ndarray:
    """The array of a .npy file. Raises OSError, and ValueError for anything else."""
    import numpy as np  # for commands that read none

    try:
        found = np.load(file, allow_pickle=False)
    except (ValueError, EOFError) as wrong:
        with Path(file).open("rb") as stream:
            is_array = stream.read(len(np.lib.format.MAGIC_PREFIX)) == np.lib.format.MAGIC_PREFIX
        if is_array and "allow_pickle" in str(wrong):
            raise ValueError("it contains Python objects, which are never loaded") from None
        raise ValueError("it is damaged" if is_array else "np.save did not write it") from None
    if not isinstance(found, np.ndarray):
        raise ValueError("it is an archive of several arrays, not one")
    return found


def unreadable(error: Exception) -> str:
    """The reason of an OSError, or of a ValueError of this module."""
    return getattr(error, "strerror", None) or str(error)


def wrong_structure(error: Exception) -> str:
    """What an error about the values of a document means for who wrote it."""
    if isinstance(error, KeyError):
        return f"the key {error} is missing"
    return "a number is too large" if isinstance(error, OverflowError) else "a value is malformed"


def parse_json(text: str, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """The document. Raises ValueError with the place, also for brackets nested too deeply."""
    return _parsed(json.loads, text, object_pairs_hook=pairs)


def parse_toml(text: str) -> dict[str, Any]:
    """The document. Raises ValueError, also for brackets nested too deeply."""
    return _parsed(tomllib.loads, text)


_OF_TOML = {
    "Cannot overwrite a value": "a key is given twice",
}


def _parsed(parse: Callable[..., Any], text: str, **options: Any) -> Any:
    try:
        return parse(text, **options)
    except json.JSONDecodeError as wrong:
        place = f"line {wrong.lineno}, column {wrong.colno}"
        raise ValueError(f"{place}: {wrong.msg[:1].lower()}{wrong.msg[1:]}") from None
    except tomllib.TOMLDecodeError as wrong:
        what, _, place = str(wrong).rstrip(")").rpartition(" (at ")
        what = _OF_TOML.get(what, what)
        raise ValueError(f"{place}: {what[:1].lower()}{what[1:]}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError as wrong:
        if "digits" not in str(wrong):
            raise
        raise ValueError("a number has more digits than Python converts") from None
