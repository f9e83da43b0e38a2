"""Steps: one change of a kernel program as data, and why one is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from neuroncore.errors import KernelError

Path = tuple[int, ...]
"""Where a statement stands: its number in the program's body, then in each loop's."""

Option = int | str
"""The value of a step's option."""


_PARTS = (
    "expected", "got", "hint", "rule", "operand", "instruction", "position", "place",
)  # fmt: skip


class Refused(KernelError):  # noqa: N818  (an outcome, as much as a mistake)
    """A step that would not keep the kernel's meaning, or that its form does not allow.

    It belongs to a step and not to a line: a search meets many of them.
    """

    def __init__(self, reason: str, step: Step | None = None) -> None:
        Exception.__init__(self, reason)
        self.what = self.reason = reason
        self.step = step
        for part in _PARTS:
            setattr(self, part, None)

    def __str__(self) -> str:
        return self.reason if self.step is None else f"{self.step}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Step:
    """A transform, the statement it is applied to, and its options by name."""

    transform: str
    at: Path
    options: tuple[tuple[str, Option], ...] = ()

    def option(self, name: str, kind: type = int) -> Any:
        """An option's value; raises Refused where it is missing or of another kind."""
        for key, value in self.options:
            if key == name and type(value) is kind:
                return value
        raise Refused(f"{self.transform} needs {name}, of type {kind.__name__}", self)

    def to_json(self) -> dict[str, Any]:
        """The step as plain data; `from_json` gives it back."""
        return {"transform": self.transform, "at": list(self.at), **dict(self.options)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Step:
        """The step that `to_json` wrote. Raises Refused for anything else."""
        if not isinstance(data, Mapping):
            raise Refused(f"a step is an object, got {data!r}")
        rest = dict(data)
        name, at = rest.pop("transform", None), rest.pop("at", None)
        if not isinstance(name, str) or not isinstance(at, (list, tuple)):
            raise Refused(f"a step needs a transform and where (at), got {data!r}")
        if not all(type(n) is int and n >= 0 for n in at):
            raise Refused(f"the place of a step is a list of statement numbers, got {at!r}")
        if not all(type(value) in (int, str) for value in rest.values()):
            raise Refused(f"options of a step are ints or text, got {rest!r}")
        return cls(name, tuple(at), tuple(rest.items()))

    def __str__(self) -> str:
        shown = "".join(f", {name}={value}" for name, value in self.options)
        return f"{self.transform}(at={'.'.join(map(str, self.at))}{shown})"
