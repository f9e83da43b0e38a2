"""What documents call unsupported on a device though simulation takes it, for the `device` check.

Source: release notes of 0.3, known issues, carried forward to 0.6. Of the same list, a power with a
number is refused, and so is a product without transpose_x in 0.3 and 0.4, which name it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import BoundArguments
from typing import Any

from neuroncore.alu import ALU_OPS, AluKind
from neuroncore.errors import UnsupportedError, Violation
from neuroncore.memory import View

_NOTES = "NKI 0.3 release notes, known issues, carried forward to 0.6"


@dataclass(frozen=True, slots=True)
class Issue:
    """Something of a function on tiles that documents say a device does not run.

    `met` says of a call's arguments whether it is one of those. `is_sure` is False where other
    documents say that a device runs it.
    """

    what: str
    instead: str
    met: Callable[[BoundArguments], bool] = field(default=lambda given: True)
    is_sure: bool = True
    documents: str = _NOTES

    @property
    def text(self) -> str:
        """For a list of them."""
        return f"{self.what} (instead: {self.instead}) [{self.documents}]"

    def violation(self, name: str) -> Violation:
        """The issue, of the function of that name."""
        rule = f"{self.documents}: {name}"
        return Violation(UnsupportedError, self.what, expected=self.instead, rule=rule)


def _does_not_transpose(given: BoundArguments) -> bool:
    return not given.arguments.get("transpose_x", False)


def _broadcasts(given: BoundArguments) -> bool:
    x, y = (given.arguments.get(name) for name in ("x", "y"))
    return isinstance(x, View) and isinstance(y, View) and x.shape != y.shape


_SIMULATED = "works in simulation and fails when it is compiled for a device"
_REMAINDER = Issue(
    _SIMULATED,
    "steps that a device has; for whole numbers nki-migrate writes them (NKI1236)",
)
_BROADCAST = Issue(
    "tiles of two shapes may not compile for a device",
    "one shape: nl.broadcast_to(x, shape)", _broadcasts, False,
    f"{_NOTES} (the 0.4 example of nl.abs_max broadcasts)",
)  # fmt: skip

_NAMED: dict[str, Issue] = {
    "mod": _REMAINDER,
    "fmod": _REMAINDER,
    "divide": Issue("is not supported on a device", "nl.multiply(x, nl.reciprocal(y))"),
    "matmul": Issue(
        "a product without transpose_x is not supported on a device",
        "x.T, copied to SBUF, with transpose_x=True", _does_not_transpose,
    ),
}  # fmt: skip

_OF_TWO_TILES = {n for n, op in ALU_OPS.items() if op.kind is not AluKind.unary and n != "invert"}


def issues_of(name: str) -> tuple[Issue, ...]:
    """What documents say of a function on tiles, the certain ones first."""
    found = [_NAMED[name]] if name in _NAMED else []
    return (*found, _BROADCAST) if name in _OF_TWO_TILES | {"fmod"} else (*found,)


def tell(name: str, issues: tuple[Issue, ...], given: BoundArguments, core: Any) -> None:
    """Tell the core's watchers which issues a call of a function meets."""
    for issue in issues:
        if issue.met(given):
            core.unsupported(f"nl.{name}", issue.violation(f"nl.{name}"), issue.is_sure)
