"""engine: another engine executes an instruction that several can."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from neuroncore.enums import Engine
from neuroncore.program import Buffer, Call, Program
from nki_dtypes import int32, uint32
from nkigym.analysis.claims import StepResult
from nkigym.analysis.legality import check_legal
from nkigym.kernels.step import Path, TransformError, TransformStep
from nkigym.kernels.tree import buffers_of, loops_around, replaced, statement_at
from nkigym.transforms._transform import Transform


def _engines(call: Call) -> list[str]:
    """The engines that the instruction may be told to use."""
    return [e.name for e in call.record.engines] if "engine" in call.attrs else []


MAX_CACHED = 1 << 10
"""Attributes that are kept, so that calls share them; beyond it they are made anew."""

_attrs: dict[tuple[int, str], tuple[Mapping[str, Any], Mapping[str, Any]]] = {}


def _on(attrs: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The attributes with another engine: one object, as what is known of calls goes by it."""
    known = _attrs.get((id(attrs), name))
    if known is None:
        if len(_attrs) >= MAX_CACHED:
            _attrs.clear()
        known = _attrs[id(attrs), name] = attrs, {**attrs, "engine": Engine[name]}
    return known[1]


def _check_exact(call: Call, buffers: Mapping[str, Buffer]) -> None:
    """Raise TransformError for integers, which gpsimd adds exactly and vector as float32."""
    dtypes = [access.dtype or buffers[access.buffer].dtype for access in call.accesses.values()]
    if call.instruction == "tensor_tensor" and all(d in (int32, uint32) for d in dtypes):
        raise TransformError("integers are exact on gpsimd alone")


def _place(program: Program, step: TransformStep) -> StepResult:
    call, name = statement_at(program, step.at), step.option("engine", str)
    if not isinstance(call, Call) or name not in _engines(call):
        raise TransformError(f"no instruction there that {name} can execute")
    if call.attrs["engine"] is Engine[name]:
        raise TransformError(f"{call.instruction} is on {name} already")
    _check_exact(call, buffers_of(program))
    placed = Call(call.instruction, call.operands, _on(call.attrs, name), call.name, call.origin)
    ranges = {loop.variable: loop.values for loop in loops_around(program, step.at)}
    check_legal(placed, ranges, buffers_of(program), program)
    return StepResult(replaced(program, step.at, (placed,)))


def _options(program: Program, at: Path, call: Call) -> Iterable[TransformStep]:
    names, taken = _engines(call), call.attrs.get("engine")
    if len(names) < 2:
        return ()
    return [TransformStep("engine", at, (("engine", n),)) for n in names if taken is not Engine[n]]


ENGINE = Transform(
    "engine", "another engine executes an instruction", _options, _place, (Call,), rank=13
)
