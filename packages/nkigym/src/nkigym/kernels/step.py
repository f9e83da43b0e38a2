"""Transform steps: one change of a kernel program as data, and the error where it is illegal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from neuroncore.errors import KernelError

Path = tuple[int, ...]
"""The place of a statement: its number in the program's body, then in each loop's."""

Option = int | str
"""The value of a step's option."""


_PARTS = (
    "expected", "got", "hint", "rule", "operand", "instruction", "position", "place",
)  # fmt: skip


class TransformError(KernelError):
    """A step that would not keep the kernel's meaning, or that its form does not allow.

    It belongs to a step and not to a line. A search raises many of them.
    """

    def __init__(self, reason: str, step: TransformStep | None = None) -> None:
        Exception.__init__(self, reason)
        self.what = self.reason = reason
        self.step = step
        for part in _PARTS:
            setattr(self, part, None)

    def __str__(self) -> str:
        return self.reason if self.step is None else f"{self.step}: {self.reason}"


@dataclass(frozen=True, slots=True)
class TransformStep:
    """A transform, the statement it is applied to, and its options by name."""

    transform: str
    at: Path
    options: tuple[tuple[str, Option], ...] = ()

    def option(self, name: str, kind: type = int) -> Any:
        """An option's value; raises TransformError where it is missing or of another kind."""
        for key, value in self.options:
            if key == name and type(value) is kind:
                return value
        raise TransformError(f"{self.transform} needs {name}, of type {kind.__name__}", self)

    def to_json(self) -> dict[str, Any]:
        """The step as plain data; `from_json` gives it back."""
        return {"transform": self.transform, "at": list(self.at), **dict(self.options)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TransformStep:
        """The step that `to_json` wrote. Raises TransformError for anything else."""
        if not isinstance(data, Mapping):
            raise TransformError(f"a step is an object, got {data!r}")
        rest = dict(data)
        name, at = rest.pop("transform", None), rest.pop("at", None)
        if not isinstance(name, str) or not isinstance(at, (list, tuple)):
            raise TransformError(f"a step needs a transform and where (at), got {data!r}")
        if not all(type(n) is int and n >= 0 for n in at):
            raise TransformError(f"the place of a step is a list of statement numbers, got {at!r}")
        if not all(type(value) in (int, str) for value in rest.values()):
            raise TransformError(f"options of a step are ints or text, got {rest!r}")
        return cls(name, tuple(at), tuple(rest.items()))

    def __str__(self) -> str:
        shown = "".join(f", {name}={value}" for name, value in self.options)
        return f"{self.transform}(at={'.'.join(map(str, self.at))}{shown})"
