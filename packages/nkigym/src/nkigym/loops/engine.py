"""engine: another engine executes an instruction that several can."""

from __future__ import annotations

from collections.abc import Iterable

from neuroncore.engines import Engine
from neuroncore.program import Call, Program, Statement
from nkigym.loops.step import Path, Refused, Step
from nkigym.loops.transform import Taken, Transform
from nkigym.loops.tree import Visible, loops_around, replaced, statement_at
from nkigym.loops.widen import refuse_illegal


def _engines(call: Call) -> list[str]:
    """The engines that the instruction may be told to use."""
    return [e.name for e in call.record.engines] if "engine" in call.attrs else []


def _place(program: Program, step: Step) -> Taken:
    call, name = statement_at(program, step.at), step.option("engine", str)
    if not isinstance(call, Call) or name not in _engines(call):
        raise Refused(f"no instruction there that {name} can execute")
    if call.attrs["engine"] is Engine[name]:
        raise Refused(f"{call.instruction} is on {name} already")
    placed = Call(
        call.instruction, call.operands, {**call.attrs, "engine": Engine[name]}, call.name,
        call.origin,
    )  # fmt: skip
    ranges = {loop.variable: loop.values for loop in loops_around(program, step.at)}
    refuse_illegal(placed, ranges, Visible(program, step.at), program)
    return Taken(replaced(program, step.at, (placed,)))


def _options(program: Program, at: Path, statement: Statement) -> Iterable[Step]:
    if isinstance(statement, Call) and len(names := _engines(statement)) > 1:
        taken = statement.attrs["engine"].name
        return [Step("engine", at, (("engine", name),)) for name in names if name != taken]
    return ()


ENGINE = Transform("engine", "another engine executes an instruction", _options, _place)
