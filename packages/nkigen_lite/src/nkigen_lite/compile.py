"""A NumPy function as a kernel: traced, fused, checked, written, run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from neuroncore.program import Program, check, emit, execute_program
from nkigen_lite.frontend import trace
from nkigen_lite.ir import Graph
from nkigen_lite.ir.run import as_input
from nkigen_lite.lower import Plan, in_machine_terms, lower, returned
from nkigen_lite.passes import canonicalize, decompose
from nkigen_lite.stats import Stats, measure


@dataclass(frozen=True)
class Compiled:
    """A kernel. Called with arrays, it runs on the machine and gives what the function gives, also
    in arguments that the function writes to: the program returns them behind the outputs.

    `graph` is what was traced, `plan` the groups that it became, `program` the checked program.
    """

    graph: Graph
    plan: Plan
    program: Program

    @cached_property
    def source(self) -> str:
        """The kernel as NKI source of the program's version."""
        return emit(self.program, self.program.nki)

    @cached_property
    def stats(self) -> Stats:
        """What one execution costs."""
        return measure(self.program)

    def explain(self) -> str:
        """The groups, how they lie on chip, why operations were not fused, how elements move."""
        lines = [f"group {number}: {group}" for number, group in enumerate(self.plan.groups)]
        plan = self.plan
        return "\n".join([*lines, *plan.strips, *map(str, plan.refusals), *plan.notes])

    def __call__(self, *arrays: Any) -> Any:
        """NumPy in, NumPy out: one array, or a tuple. Raises SpecError for other dtypes or counts,
        BroadcastError for other shapes than those compiled for."""
        given = self.inputs(*arrays)
        results = execute_program(self.program, given)
        graph, names = self.plan.graph, returned(self.plan.graph)
        values = [
            np.asarray(r).reshape(graph.specs[name].shape).view(graph.specs[name].storage)
            for r, name in zip(results, names, strict=True)
        ]
        made = dict(zip(names, values, strict=True))
        numbers = {v.name: number for number, v in enumerate(graph.inputs)}
        for name, value in graph.writes:
            arrays[numbers[name]][...] = made[value]
        outputs = tuple(values[: len(graph.outputs)])
        return outputs[0] if len(outputs) == 1 else outputs

    def inputs(self, *arrays: Any) -> list[np.ndarray]:
        """The arrays as the kernel takes them: in storage dtypes, rank 0 as one element."""
        if len(arrays) != len(self.graph.inputs):
            from nkigen_lite.errors import SpecError

            raise SpecError(
                f"{self.graph.name} takes {len(self.graph.inputs)} arrays", got=str(len(arrays))
            )
        return [
            np.ascontiguousarray(as_input(a, v.spec, v.name)).reshape(v.spec.shape or (1,))
            for a, v in zip(arrays, self.graph.inputs, strict=True)
        ]


def compile(
    function: Callable[..., Any], *specs: Any, target: str = "trn2", nki: str = "0.6"
) -> Compiled:
    """The kernel of `function` for arguments like `specs` (arrays, Specs, "f32[128, 512]").

    Raises TraceError and its kin for what cannot be traced, LoweringError for what cannot be
    lowered yet, both at the user's line; ProgramError never, unless the fault is ours.

    >>> kernel = compile(lambda x: x * 2 + 1, "f32[256, 512]")
    >>> kernel.stats.instructions, kernel.stats.dmas
    (3, 2)
    """
    graph = trace(function, *specs)
    program, plan = lower(in_machine_terms(decompose(canonicalize(graph))), target, nki)
    check(program)
    return Compiled(graph, plan, program)
