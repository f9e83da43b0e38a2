"""JSON values with their path in the file, which errors name."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tokenplan.checker.errors import PlanFileError

LARGEST = 1 << 60  # sums of a few of them stay exact in 64-bit NumPy integers


@dataclass(frozen=True, slots=True)
class Value:
    """A JSON value and its path in the file; its type is the one that the schema requires."""

    value: Any
    place: str = ""

    def wrong(self, what: str) -> PlanFileError:
        return PlanFileError(self.place or "the file", what)

    def fields(self) -> dict[str, Value]:
        """The members of an object with names of the schema."""
        return {name: self.below(name, v) for name, v in self.value.items()}

    def members(self) -> dict[str, Value]:
        """The members of an object with names of its own."""
        return {name: Value(v, f"{self.place}[{name!r}]") for name, v in self.value.items()}

    def below(self, name: str, value: Any) -> Value:
        """A member of this object."""
        return Value(value, f"{self.place}.{name}" if self.place else name)

    def shown(self) -> str:
        """The value as JSON, long ones cut."""
        text = json.dumps(self.value)
        return text if len(text) <= 60 else f"{text[:57]}..."

    def items(self) -> list[Value]:
        """The members of a list."""
        return [Value(v, f"{self.place}[{n}]") for n, v in enumerate(self.value)]

    def text(self) -> str:
        if not self.value:
            raise self.wrong(f"expected a name, got {self.shown()}")
        return self.value

    def integer(self, least: int = -LARGEST, most: int = LARGEST) -> int:
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            raise self.wrong(f"expected an integer, got {self.shown()}")
        if not least <= self.value <= most:
            raise self.wrong(f"{self.value} is not between {least} and {most}")
        return self.value

    def integers(self, least: int = -LARGEST) -> tuple[int, ...]:
        return tuple(item.integer(least) for item in self.items())


def load(text: str) -> Value:
    """The one value of a JSON text; raises PlanFileError with line and column."""
    try:
        return Value(json.loads(text, object_pairs_hook=_object, parse_constant=_reject))
    except json.JSONDecodeError as wrong:
        place = f"line {wrong.lineno}, column {wrong.colno}"
        raise PlanFileError(place, f"not JSON: {wrong.msg[:1].lower()}{wrong.msg[1:]}") from None
    except (RecursionError, ValueError) as wrong:
        if isinstance(wrong, PlanFileError):
            raise
        is_deep = isinstance(wrong, RecursionError)
        reason = "nested too deeply" if is_deep else "a number has more digits than Python converts"
        raise PlanFileError("the file", f"not JSON that can be read: {reason}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise PlanFileError("the file", f"an object has {twice!r} twice")
    return made


def _reject(constant: str) -> Any:
    raise PlanFileError("the file", f"{constant} is not a number in JSON")
