"""The published schema of plan files, held to by code of its own.

`plan.schema.json` is read as data. Of JSON Schema 2020-12 the keywords in `KEYWORDS` are known, and
what they mean here is what they mean there; a schema with another one is rejected.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from tokenplan.checker.errors import PlanFileError
from tokenplan.checker.json_values import Value

DEEPEST = 150
"""Objects and lists inside one another; loops may be nested 60 deep."""
NOTES = {"$schema", "$defs", "title", "description"}

Schema = dict[str, Any]


@cache
def published() -> Schema:
    """The schema that comes with the package."""
    path = Path(__file__).parents[1] / "plan.schema.json"
    return json.loads(path.read_text("utf-8"))


def hold_to_schema(file: Value) -> None:
    """Raises PlanFileError at the first place where the file is not what the schema says."""
    _check_depth(file)
    _check(file, published())


def _check_depth(file: Value) -> None:
    layer, depth = [file.value], 0
    while layer:
        layer = [
            inner
            for value in layer
            if isinstance(value, (dict, list))
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
        depth += 1
        if depth > DEEPEST:
            raise file.wrong(f"objects and lists are nested more than {DEEPEST} deep")


def _check(given: Value, schema: Schema) -> None:
    for keyword, meant in schema.items():
        if keyword not in NOTES:
            KEYWORDS[keyword](given, meant, schema)


# -- any value -------------------------------------------------------------------------------------

_IS: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: _is_number(value) and value == value // 1,  # 1.0 is one, as there
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}
_CALLED = {
    "object": "an object", "array": "a list", "string": "a text", "integer": "an integer",
    "boolean": "true or false", "null": "null",
}  # fmt: skip


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _type(given: Value, meant: str | list[str], schema: Schema) -> None:
    del schema
    names = [meant] if isinstance(meant, str) else meant
    if not any(_IS[name](given.value) for name in names):
        expected = " or ".join(_CALLED[name] for name in names)
        raise given.wrong(f"expected {expected}, got {given.shown()}")


def _enum(given: Value, meant: list[str], schema: Schema) -> None:
    del schema
    if given.value not in meant:
        raise given.wrong(f"expected one of {' '.join(meant)}, got {given.shown()}")


def _const(given: Value, meant: str, schema: Schema) -> None:
    _enum(given, [meant], schema)


def _ref(given: Value, meant: str, schema: Schema) -> None:
    del schema
    _check(given, published()["$defs"][meant.removeprefix("#/$defs/")])


def _one_of(given: Value, meant: list[Schema], schema: Schema) -> None:
    """Exactly one of the schemas holds; else what is wrong by the one that comes nearest."""
    del schema
    wrong: list[tuple[int, PlanFileError]] = []
    for option in meant:
        try:
            _check(given, option)
        except PlanFileError as error:
            wrong.append((_likeness(given, option), error))
    if len(wrong) == len(meant):
        raise max(wrong, key=lambda entry: entry[0])[1]
    if len(wrong) < len(meant) - 1:
        raise given.wrong("it could be two things at once")


def _likeness(given: Value, option: Schema) -> int:
    """The number of members of the value that an option declares; for others, whether the type
    matches.
    """
    while "$ref" in option:
        option = published()["$defs"][option["$ref"].removeprefix("#/$defs/")]
    if not isinstance(given.value, dict):
        return int(_IS[option["type"]](given.value))
    known = option.get("properties", {})
    consts = sum(
        "const" in rule and rule["const"] == given.value.get(name) for name, rule in known.items()
    )
    return len(known.keys() & given.value.keys()) + consts


# -- texts, numbers, lists -------------------------------------------------------------------------


def _pattern(given: Value, meant: str, schema: Schema) -> None:
    del schema
    if isinstance(given.value, str) and not re.search(meant, given.value):
        raise given.wrong(f"expected text like {meant}, got {given.shown()}")


def _min_length(given: Value, meant: int, schema: Schema) -> None:
    del schema
    if isinstance(given.value, str) and len(given.value) < meant:
        raise given.wrong(f"expected a name, got {given.shown()}")


def _minimum(given: Value, meant: int, schema: Schema) -> None:
    del schema
    if _is_number(given.value) and given.value < meant:
        raise given.wrong(f"{given.shown()} is less than {meant}")


def _items(given: Value, meant: Schema, schema: Schema) -> None:
    del schema
    if isinstance(given.value, list):
        for item in given.items():
            _check(item, meant)


def _min_items(given: Value, meant: int, schema: Schema) -> None:
    del schema
    if isinstance(given.value, list) and len(given.value) < meant:
        raise given.wrong(f"expected {meant} or more, got {len(given.value)}")


def _max_items(given: Value, meant: int, schema: Schema) -> None:
    del schema
    if isinstance(given.value, list) and len(given.value) > meant:
        raise given.wrong(f"expected {meant} or fewer, got {len(given.value)}")


# -- objects ---------------------------------------------------------------------------------------


def _required(given: Value, meant: list[str], schema: Schema) -> None:
    del schema
    missing = [n for n in meant if n not in given.value] if isinstance(given.value, dict) else []
    if missing:
        raise given.wrong(f"no {', '.join(missing)}")


def _properties(given: Value, meant: dict[str, Schema], schema: Schema) -> None:
    del schema
    if isinstance(given.value, dict):
        for name, value in given.value.items():
            if name in meant:
                _check(given.below(name, value), meant[name])


def _additional(given: Value, meant: bool | Schema, schema: Schema) -> None:
    if not isinstance(given.value, dict):
        return
    others = [name for name in given.value if name not in schema.get("properties", {})]
    if others and meant is False:
        raise given.wrong(f"unknown field {', '.join(others)}")
    if isinstance(meant, dict):
        for name in others:
            _check(Value(given.value[name], f"{given.place}[{name!r}]"), meant)


KEYWORDS: dict[str, Callable[[Value, Any, Schema], None]] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "$ref": _ref,
    "oneOf": _one_of,
    "pattern": _pattern,
    "minLength": _min_length,
    "minimum": _minimum,
    "items": _items,
    "minItems": _min_items,
    "maxItems": _max_items,
    "required": _required,
    "properties": _properties,
    "additionalProperties": _additional,
}
