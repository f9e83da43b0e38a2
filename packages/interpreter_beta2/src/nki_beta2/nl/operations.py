"""Operations by name, for `op=`; from 0.3 on most of them are functions on tiles, too.

Documented known issues of functions on tiles are reported to the `device` check. Source: release
notes of 0.3, known issues, carried forward to 0.6. Of the same list, a power with a number is an
error here, and so is a product without transpose_x in 0.3 and 0.4, which name it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import BoundArguments
from typing import Any

import numpy as np

from neuroncore.activations import ACTIVATIONS
from neuroncore.alu import ALU_OPS, AVERAGE, BYPASS, AluKind
from neuroncore.errors import KernelError, SignatureError, UnsupportedError, Violation
from neuroncore.machine.launch import running
from neuroncore.memory import View
from nki_beta2.kernel.jit import Language
from nki_beta2.nl import transfers as moves
from nki_beta2.nl.arithmetic import copy
from nki_beta2.nl.tile_functions import FUNCTIONS, rsqrt_since_0_5

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
    """Documented issues of a function on tiles, the certain ones first."""
    found = [_NAMED[name]] if name in _NAMED else []
    return (*found, _BROADCAST) if name in _OF_TWO_TILES | {"fmod"} else (*found,)


def report_issues(name: str, issues: tuple[Issue, ...], given: BoundArguments, core: Any) -> None:
    """Report the issues of a call of a function to the core's watchers."""
    for issue in issues:
        if issue.met(given):
            core.unsupported(f"nl.{name}", issue.violation(f"nl.{name}"), issue.is_sure)


_OPERATIONS = (*ALU_OPS.values(), *ACTIVATIONS.values(), BYPASS, AVERAGE)
"""Every operation that `op=` takes; square and relu are ALU operations and activation functions."""

_TILE = (lambda v: isinstance(v, View), "a tile")
_VALUE = (lambda v: isinstance(v, (View, int, float, np.number, np.bool_)), "a tile or a number")
_TENSORS = dict.fromkeys(
    ("condition", "data", "indices", "src", "dst", "value", "w", "tensor"), _TILE
)


class Operation:
    """The name of an operation, for `op=` arguments; not a function on tiles."""

    __slots__ = ("__name__",)

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        op = f"nl.{self.__name__}"
        instead = f"tensor_tensor(dst=…, data1=…, data2=…, op={op})"
        if self.__name__ == "logical_not":
            instead = "tensor_scalar(dst=…, data=…, op0=nl.equal, operand0=0.0)"
        elif self.__name__ in ACTIVATIONS:
            instead = f"activation(dst=…, op={op}, data=…)"
        raise UnsupportedError(
            f"{op} is not a function on tiles in this version",
            expected="an nki.isa instruction with a destination",
            got=f"{op}(…)",
            hint=f"use it as an operation: nisa.{instead}",
            rule="NKI: nki.language, tile functions (0.3 and later)",
        )

    def __copy__(self) -> Operation:
        return self

    def __deepcopy__(self, memo: object) -> Operation:
        return self

    def __repr__(self) -> str:
        return f"nl.{self.__name__}"


class TileFunction(Operation):
    """A function on tiles, which is also the operation of its name where there is one."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        super().__init__(name)
        self.function = function
        self.issues = issues_of(function.__name__)
        self.__doc__ = function.__doc__
        self.__signature__ = inspect.signature(function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result; errors of its instructions are reported under its name."""
        try:
            given = self.__signature__.bind(*args, **kwargs)
        except TypeError as wrong:
            raise SignatureError(
                str(wrong), expected=f"{self!r}{self._words()}", instruction=repr(self),
                rule="NKI: nki.language, tile functions (0.3 and later)",
            ) from None  # fmt: skip
        self._check_operands(given)
        try:
            result = self.function(*args, **kwargs)
        except KernelError as wrong:
            if wrong.instruction is not None:
                wrong.hint = wrong.hint or f"this is the instruction {wrong.instruction} in it"
                wrong.operand = wrong.position = None
            wrong.instruction = repr(self)
            raise
        if self.issues and (core := running(repr(self)).core).watchers:
            report_issues(self.__name__, self.issues, given, core)
        return result

    def _check_operands(self, given: inspect.BoundArguments) -> None:
        for position, (name, value) in enumerate(given.arguments.items()):
            kinds = self._takes(name)
            if kinds is not None and not kinds[0](value):
                raise SignatureError(
                    f"{name} cannot be a {type(value).__name__}", expected=kinds[1],
                    got=repr(value)[:80], operand=name, position=position,
                    instruction=repr(self), rule="NKI: nki.language, tile functions",
                )  # fmt: skip

    def _takes(self, name: str) -> Any:
        """Whether a parameter takes tiles: alone, or with numbers where there is a second."""
        if name in ("x", "y"):
            both = "y" in self.__signature__.parameters and self.__name__ != "matmul"
            return _VALUE if both else _TILE
        return _TENSORS.get(name)

    def _words(self) -> str:
        return f"({', '.join(self.__signature__.parameters)})"


def operations(language: Language) -> dict[str, Any]:
    """Operations of this version, and its functions on tiles, by name."""
    version = language.version
    found: dict[str, Any] = {
        op.name: Operation(op.name) for op in _OPERATIONS if op.since <= version
    }
    later = {op.name for op in _OPERATIONS} - found.keys()
    if version < (0, 3):
        return found | {
            "logical_not": Operation("logical_not"),
            "shared_identity_matrix": moves.shared_identity_matrix_of_0_2,
            "device_print": TileFunction("device_print", moves.device_print),
        }
    functions = dict(FUNCTIONS)
    functions["copy"] = moves.copy_before_0_6 if version < (0, 6) else copy
    if version >= (0, 5):
        functions["rsqrt"] = rsqrt_since_0_5
    for function in moves.MOVES:
        functions[function.__name__] = function
    functions["matmul"] = moves.matmul if version >= (0, 5) else moves.matmul_up_to_0_4
    found |= {
        name: TileFunction(name, function)
        for name, function in functions.items()
        if name not in later
    }
    return (
        found
        | moves.PREDICATES
        | {
            "shared_identity_matrix": moves.shared_identity_matrix,
            "device_print": TileFunction("device_print", moves.device_print),
        }
    )
