"""engine: another engine executes an instruction that several can."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from neuroncore.engines import Engine
from neuroncore.program import Buffer, Call, Program
from nki_dtypes import int32, uint32
from nkigym.loops.legal import refuse_illegal
from nkigym.loops.step import Path, Refused, Step
from nkigym.loops.transform import Taken, Transform
from nkigym.loops.tree import Visible, loops_around, replaced, statement_at


def _engines(call: Call) -> list[str]:
    """The engines that the instruction may be told to use."""
    return [e.name for e in call.record.engines] if "engine" in call.attrs else []


KEPT = 1 << 10
"""Attributes that are kept, so that calls share them; beyond it they are made anew."""

_attrs: dict[tuple[int, str], tuple[Mapping[str, Any], Mapping[str, Any]]] = {}


def _on(attrs: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The attributes with another engine: one object, as what is known of calls goes by it."""
    known = _attrs.get((id(attrs), name))
    if known is None:
        if len(_attrs) >= KEPT:
            _attrs.clear()
        known = _attrs[id(attrs), name] = attrs, {**attrs, "engine": Engine[name]}
    return known[1]


def _refuse_exact(call: Call, buffers: Mapping[str, Buffer]) -> None:
    """Raise Refused for integers, which gpsimd adds exactly and vector as float32."""
    dtypes = [access.dtype or buffers[access.buffer].dtype for access in call.accesses.values()]
    if call.instruction == "tensor_tensor" and all(d in (int32, uint32) for d in dtypes):
        raise Refused("integers are exact on gpsimd alone")


def _place(program: Program, step: Step) -> Taken:
    call, name = statement_at(program, step.at), step.option("engine", str)
    if not isinstance(call, Call) or name not in _engines(call):
        raise Refused(f"no instruction there that {name} can execute")
    if call.attrs["engine"] is Engine[name]:
        raise Refused(f"{call.instruction} is on {name} already")
    _refuse_exact(call, Visible(program, step.at))
    placed = Call(call.instruction, call.operands, _on(call.attrs, name), call.name, call.origin)
    ranges = {loop.variable: loop.values for loop in loops_around(program, step.at)}
    refuse_illegal(placed, ranges, Visible(program, step.at), program)
    return Taken(replaced(program, step.at, (placed,)))


def _options(program: Program, at: Path, call: Call) -> Iterable[Step]:
    names, taken = _engines(call), call.attrs.get("engine")
    if len(names) < 2:
        return ()
    return [Step("engine", at, (("engine", n),)) for n in names if taken is not Engine[n]]


ENGINE = Transform("engine", "another engine executes an instruction", _options, _place, (Call,))
