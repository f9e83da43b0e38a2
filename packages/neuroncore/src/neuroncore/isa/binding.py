"""From the arguments of an isa call to its plan: what the generated functions fall back to."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable
from enum import Enum
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from neuroncore.errors import (
    AttributeValueError,
    KernelError,
    ShapeError,
    SignatureError,
    UnsupportedError,
)
from neuroncore.instructions import Attr, Call, Instruction, Operand
from neuroncore.instructions._execute import plan, with_initialization
from neuroncore.instructions._limits import warn_at_kernel
from neuroncore.isa.handles import handle_at
from neuroncore.machine.core import NeuronCore
from neuroncore.machine.observe import Event
from neuroncore.memory import View
from neuroncore.options import Options
from neuroncore.source_location import find_place
from neuroncore.spec import Spec
from neuroncore.surface import VERSIONS, Signature, signature, span, version_tuple

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "<missing>"})()
PLANS_KEPT = 1 << 16
CODES_RULE = "NKI 0.3 migration guide: enum members, not integers"


def freeze(value: Any) -> Any:
    """Lists as tuples, so that a pattern can be part of a key."""
    return tuple(map(freeze, value)) if isinstance(value, (list, tuple)) else value


class Binding:
    """A record under one signature: the first call with new specs, wrong calls, watched calls."""

    def __init__(
        self, record: Instruction, signature: Signature, returns_handle: bool = False
    ) -> None:
        self.record = record
        self.signature = signature
        self.version = version_tuple(signature.version)
        self.returns_handle = returns_handle
        self.position = {p.field: i for i, p in enumerate(signature.params)}
        self.places = [(f, self.position.get(f)) for f in record.operands]
        self.keyed = [
            (i, p.field in record.operands)
            for i, p in enumerate(signature.params)
            if p.field in record.operands or p.name != "name"
        ]
        """The parameters that calls are remembered by, and which of them are operands."""

    def __call__(
        self, values: tuple[Any, ...], extra: tuple[Any, ...], unknown: dict[str, Any]
    ) -> Any:
        self._reject_incompatible(values, extra, unknown)
        operands = {f: None if i is None else values[i] for f, i in self.places}
        try:
            core, call, execute = self._prepare(values, operands)
        except KernelError as wrong:
            self._point_at_argument(wrong)
            raise
        if core.watchers:
            named = self.position.get("name")
            name = None if named is None else values[named]
            event = Event(call, operands, find_place(), name)
            core.perform(event, execute, operands.values())
        else:
            execute(*operands.values())
        return handle_at(sys._getframe(2)) if self.returns_handle else None

    def _prepare(
        self, values: tuple[Any, ...], operands: dict[str, Any]
    ) -> tuple[NeuronCore, Call, Callable[..., None]]:
        """The core, the call, and what executes it; remembered by what it was asked with."""
        anchor = self.record.anchor
        self._kind(anchor, operands[anchor])
        core = operands[anchor].core
        key = self._key(values)
        try:
            execute, call = core.plans.get(key), core.calls.get(key)
        except TypeError:
            self._reject_unhashable(values)
            raise
        if execute is None or call is None:
            call = self._call(core, operands, values)
            execute = execute or self._plan(call, operands)
            for memory, found in ((core.plans, execute), (core.calls, call)):
                if len(memory) >= PLANS_KEPT:
                    memory.clear()
                memory[key] = found
        return core, call, execute

    def _key(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        key: list[Any] = [self]
        for i, is_operand in self.keyed:
            value = values[i]
            if is_operand:
                key.append(value.spec if isinstance(value, View) else value.__class__)
            else:
                key.append(freeze(value) if isinstance(value, (list, tuple)) else value)
        return tuple(key)

    def _reject_unhashable(self, values: tuple[Any, ...]) -> None:
        for p, value in zip(self.signature.params, values, strict=True):
            try:
                hash(None if p.field in self.record.operands else freeze(value))
            except TypeError:
                what = f"{p.field} cannot be a {type(value).__name__}"
                raise AttributeValueError(what, got=describe(value), operand=p.field) from None

    def _plan(self, call: Call, operands: dict[str, Any]) -> Callable[..., None]:
        fresh = [n for n, v in operands.items() if isinstance(v, View) and v.spec.fresh]
        execute = plan(call)
        return with_initialization(execute, call, fresh) if fresh else execute

    def _call(self, core: NeuronCore, operands: dict[str, Any], values: tuple[Any, ...]) -> Call:
        given = {p.field: v for p, v in zip(self.signature.params, values, strict=True)}
        for field in ("name", *operands):
            given.pop(field, None)
        specs = {f: self._kind(f, value) for f, value in operands.items()}
        attrs = {
            f: self._attribute(f, a, given, core.options) for f, a in self.record.attrs.items()
        }
        for field, value in given.items():  # parameters that no record field models
            self._reject_unmodelled(field, value)
        return Call(self.record, specs, attrs, core.target, core.options, self.version)

    def _attribute(self, field: str, attr: Attr, given: dict[str, Any], options: Options) -> Any:
        value = given.pop(field, attr.default)
        if self.version >= (0, 2) and is_function(value):
            raise AttributeValueError(
                f"{field}={value!r} is a function",
                expected="an operation of nki.language, such as nl.add",
                got=describe(value),
                operand=field,
                rule="NKI 0.2 migration guide: nl operations instead of NumPy functions",
            )
        if self.version >= (0, 3) and isinstance(attr.default, Enum) and isinstance(value, int):
            self._judge_code(field, value, type(attr.default), options)
        try:
            return attr.convert(value)
        except KernelError as wrong:
            wrong.operand = wrong.operand or field
            raise

    def _judge_code(self, field: str, value: int, kind: type[Enum], options: Options) -> None:
        """An integer code in place of a member: rejected, or what the option `enum_codes` says."""
        codes = options.enum_codes if self.version < (0, 4) else "error"
        if codes == "error":
            raise AttributeValueError(
                f"{field}={value!r} is an integer code",
                expected="a member: " + ", ".join(m.name for m in kind),
                got=repr(value),
                operand=field,
                rule=CODES_RULE,
            )
        if codes == "warn":
            warn_at_kernel(f"{field}={value!r} is an integer code, not a member [{CODES_RULE}]")

    def _kind(self, field: str, value: Any) -> Spec | type | None:
        operand = self.record.operands[field]
        if isinstance(value, View):
            if operand.tile and 0 in value.shape:
                raise ShapeError(
                    f"{field} has no elements",
                    expected="one element or more",
                    got=repr(value),
                    hint="leave the instruction out where a core has no share of the work",
                    operand=field,
                )
            if operand.tile:
                return value.spec.initialized
        elif value is None and operand.optional:
            return None
        elif operand.number and isinstance(value, (int, float, np.number, np.bool_)):
            return type(value)
        raise SignatureError(
            f"{field} cannot be a {type(value).__name__}",
            expected=kinds(operand),
            got=describe(value),
            hint=array_hint(value) or order_hint(self.signature, self.position.get(field, 0)),
            operand=field,
            rule=f"NKI {self.signature.version}: {self.signature}",
        )

    def _point_at_argument(self, wrong: KernelError) -> None:
        """Complete an error that names a field: the instruction, and where its argument stands."""
        wrong.instruction = wrong.instruction or self.record.name
        position = self.position.get(wrong.operand or "")
        if position is not None:
            wrong.operand, wrong.position = self.signature.params[position].name, position

    def _reject_unmodelled(self, field: str, value: Any) -> None:
        param = self.signature.params[self.position[field]]
        if not param.required and (value is param.default or value == param.default):
            return
        raise UnsupportedError(
            f"{field}={value!r} is not modelled",
            expected=f"{field} left at its default {param.text}",
            got=describe(value),
            hint="it is rejected because ignoring it could give a wrong answer",
            operand=field,
            rule=f"NKI {self.signature.version}: {self.signature}",
        )

    def _reject_incompatible(
        self, values: tuple[Any, ...], extra: tuple[Any, ...], unknown: dict[str, Any]
    ) -> None:
        given = self.signature
        if not extra and not unknown and all(v is not MISSING for v in values):
            return
        missing = [p.name for p, v in zip(given.params, values, strict=True) if v is MISSING]
        hint = None
        if extra:
            what, got = "too many arguments", f"{len(given.params) + len(extra)} arguments"
            hint = order_hint(given, len(given.params))
        elif unknown:
            what, got = f"no parameter {next(iter(unknown))!r}", ", ".join(unknown)
            hint = unknown_hint(given, next(iter(unknown)))
        else:
            what, got = f"argument {missing[0]!r} is missing", f"{', '.join(missing)} missing"
            hint = order_hint(given, [p.name for p in given.params].index(missing[0]))
        raise SignatureError(
            what,
            expected=str(given),
            got=got,
            hint=hint,
            instruction=self.record.name,
            operand=next(iter(unknown), None),
            rule=f"NKI {given.version}: signature of {self.record.name}",
        )


# -- hints for arguments that do not fit -----------------------------------------------------------


def kinds(operand: Operand) -> str:
    """The kinds of values that an operand may have, in words."""
    named = ["a tensor"] if operand.tile else []
    named += ["a number"] if operand.number else []
    named += ["None"] if operand.optional else []
    return " or ".join(named)


def describe(value: Any) -> str:
    """A value on one short line."""
    if isinstance(value, np.ndarray):
        return f"a NumPy array of shape {value.shape}, {value.dtype}"
    return repr(value).partition("\n")[0][:80]


def is_function(value: Any) -> bool:
    """Whether a value is a Python or NumPy function instead of an operation of the language."""
    numpys = type(value).__module__.partition(".")[0] == "numpy" and callable(value)
    return numpys or isinstance(value, (FunctionType, BuiltinFunctionType))


def array_hint(value: Any) -> str | None:
    """A NumPy array is a tensor only as an argument of the kernel; a grid has a tensor."""
    if isinstance(value, np.ndarray):
        return "arrays become tensors as arguments of the kernel: pass it to the kernel's call"
    return getattr(value, "operand_hint", None)


def unknown_hint(given: Signature, name: str) -> str | None:
    """About a parameter that this version lacks: who has it, or which name may be meant."""
    if name in ("mask", "dtype"):
        return "mask= and dtype= ended with 0.1: clamp slices with min(), and put the dtype on dst"
    having = versions_where(given.name, lambda s: any(p.name == name for p in s.params))
    if having:
        return f"{name} is a parameter in NKI {span(having)}"
    near = difflib.get_close_matches(name, [p.name for p in given.params], n=1)
    return f"did you mean {near[0]}?" if near else None


def order_hint(given: Signature, position: int) -> str | None:
    """Another version that has something else at this position: the call may be written for it."""

    def at(s: Signature) -> str | None:
        return s.params[position].name if position < len(s.params) else None

    others = versions_where(given.name, lambda s: at(s) not in (None, at(given)))
    if not others:
        return None
    other = signature(given.name, others[-1])
    return f"by position? NKI {span(others)} took {other}"


def versions_where(name: str, holds: Callable[[Signature], bool]) -> list[str]:
    """The versions from 0.2 on in which instruction `name` has a signature like that."""
    found = {v: signature(name, v) for v in VERSIONS if v != "0.1"}
    return [v for v, s in found.items() if s is not None and holds(s)]
