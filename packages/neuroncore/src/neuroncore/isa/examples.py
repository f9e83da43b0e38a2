"""Calls of an instruction that its examples and its limits describe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from neuroncore.instructions._example_operands import make_operand
from neuroncore.instructions._execute import plan
from neuroncore.instructions._record import Call, Example, Instruction
from neuroncore.machine.core import NeuronCore
from neuroncore.memory import View
from neuroncore.options import Options

_SETTINGS = ("target", "version", "options")


@dataclass(frozen=True, slots=True)
class Use:
    """One use of an instruction: the call and the operands to execute it on."""

    call: Call
    operands: Mapping[str, Any]

    def run(self) -> None:
        """Check and execute; raises what is wrong with the call."""
        plan(self.call)(*self.operands.values())


def example_call(record: Instruction, example: Example, **changes: Any) -> Use:
    """`example` of `record` with some fields replaced.

    Fields are operands (spec text for a tile of undefined content; an array for float32 in SBUF;
    `("hbm", array)` for another memory and `("sbuf uint8", array)` for another dtype too; a
    function of the core that makes the view; a number; None), attributes as a kernel writes them,
    and `target` (trn2), `version` ((0, 6)) and `options`.
    """
    given = {**example.given, **changes}
    target, version, options = (given.pop(name, None) for name in _SETTINGS)
    core = NeuronCore(target or "trn2", options or Options())
    operands = {f: make_operand(core, given.pop(f, None)) for f in record.operands}
    attrs = record.attributes({f: given.pop(f) for f in record.attrs if f in given})
    assert not given, f"{record.name} has no {', '.join(given)}"
    specs = {f: v.spec if isinstance(v, View) else _kind(v) for f, v in operands.items()}
    return Use(Call(record, specs, attrs, core.target, core.options, version or (0, 6)), operands)


def _kind(value: Any) -> type | None:
    return None if value is None else type(value)
