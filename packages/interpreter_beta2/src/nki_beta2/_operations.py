"""Operations by name, for `op=`; from 0.3 on most of them are functions on tiles, too."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from neuroncore.activations import ACTIVATIONS
from neuroncore.alu import ALU_OPS, AVERAGE, BYPASS
from neuroncore.errors import KernelError, SignatureError, UnsupportedError
from neuroncore.launch import running
from neuroncore.memory import View
from nki_beta2 import _tile_moves as moves
from nki_beta2._arithmetic import copy
from nki_beta2._jit import Language
from nki_beta2._known_issues import issues_of, tell
from nki_beta2._tile_functions import FUNCTIONS, rsqrt_since_0_5

_OPERATIONS = (*ALU_OPS.values(), *ACTIVATIONS.values(), BYPASS, AVERAGE)
"""Everything that `op=` arguments take; square and relu are here twice, and older as functions."""

_TILE = (lambda v: isinstance(v, View), "a tile")
_VALUE = (lambda v: isinstance(v, (View, int, float, np.number, np.bool_)), "a tile or a number")
_TENSORS = dict.fromkeys(
    ("condition", "data", "indices", "src", "dst", "value", "w", "tensor"), _TILE
)


class Operation:
    """The name of an operation, for `op=` arguments; it is no function on tiles."""

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
            f"{op} is no function on tiles in this version",
            expected="an nki.isa instruction with a destination",
            got=f"{op}(…)",
            hint=f"use it as an operation: nisa.{instead}",
            rule="NKI: nki.language, tile functions (0.3 and later)",
        )

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
        """The function's result; errors of its instructions are told under its own name."""
        try:
            given = self.__signature__.bind(*args, **kwargs)
        except TypeError as wrong:
            raise SignatureError(
                str(wrong), expected=f"{self!r}{self._words()}", instruction=repr(self),
                rule="NKI: nki.language, tile functions (0.3 and later)",
            ) from None  # fmt: skip
        self._refuse_others(given)
        try:
            result = self.function(*args, **kwargs)
        except KernelError as wrong:
            if wrong.instruction is not None:
                wrong.hint = wrong.hint or f"this is the instruction {wrong.instruction} in it"
                wrong.operand = wrong.position = None
            wrong.instruction = repr(self)
            raise
        if self.issues and (core := running(repr(self)).core).watchers:
            tell(self.__name__, self.issues, given, core)
        return result

    def _refuse_others(self, given: inspect.BoundArguments) -> None:
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
    """What this version calls operations, and its functions on tiles."""
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
