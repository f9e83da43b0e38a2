"""A NumPy function as a kernel: traced, fused, checked, written, run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from neuroncore.errors import LaunchError
from neuroncore.machine.garbage_collection import fewer_collections
from neuroncore.program import (
    Allocate,
    Program,
    check,
    constant_buffer,
    emit,
    execute_program,
)
from neuroncore.surface import DEFAULT_VERSION, VERSIONS
from neuroncore.targets import resolve_target
from nkigen_lite.codegen import generate, returned
from nkigen_lite.codegen.movement.constant_arrays import constants_as_parameters
from nkigen_lite.compiler.report import Stats, explained, measure
from nkigen_lite.frontend import trace
from nkigen_lite.fusion import Plan
from nkigen_lite.ir import Graph
from nkigen_lite.ir.interpreter import as_input
from nkigen_lite.legalization.rules import in_machine_terms
from nkigen_lite.passes import canonicalize, decompose, find_steps, map_bodies, rolled, why_unrolled
from nkigen_lite.selection.unsupported import CodegenError
from nkigen_lite.tensors.errors import SpecError

WRITTEN = VERSIONS[1:]
"""The NKI versions that kernels can be written for: 0.1 is another language."""


@dataclass(frozen=True)
class Compiled:
    """A kernel. Called with arrays, it runs on the machine and gives what the function gives, also
    in arguments that the function writes to: the program returns them behind the outputs.

    `passes` are the graphs from what was traced to what was lowered, by pass; `plan` the groups
    that the last one became, `program` the checked program, `constants` the arrays that it takes
    behind the arguments, by parameter.
    """

    passes: Mapping[str, Graph]
    plan: Plan
    program: Program
    constants: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def graph(self) -> Graph:
        """The traced graph."""
        return self.passes["traced"]

    @property
    def self_contained(self) -> Program:
        """The program with its constants inside, on the arguments alone."""
        own = len(self.program.parameters) - len(self.constants)
        arguments, taken = self.program.parameters[:own], self.program.parameters[own:]
        inside = (Allocate(constant_buffer(p.name, self.constants[p.name], p.dtype)) for p in taken)
        return replace(self.program, parameters=arguments, body=(*inside, *self.program.body))

    @cached_property
    def source(self) -> str:
        """The kernel as NKI source of the program's version."""
        with fewer_collections:
            return emit(self.program, self.program.nki, verified=True)

    @cached_property
    def stats(self) -> Stats:
        """The cost of one execution."""
        return measure(self.program)

    def explain(self) -> str:
        """The result of each pass, the groups, why operations were not fused, what each array
        moves and the least, the cost: text."""
        return explained(self.passes, self.plan, self.stats, self.program)

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """NumPy in, NumPy out: one array, or a tuple; arguments in order or by name. Raises
        SpecError for other dtypes, counts or names, BroadcastError for other shapes than those
        compiled for."""
        arrays = self._in_order(arrays, named) if named else arrays
        return self.results(execute_program(self.program, self.inputs(*arrays)), arrays)

    def _in_order(self, arrays: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
        names = [v.name for v in self.graph.inputs[len(arrays) :]]
        if set(names) != named.keys():
            raise SpecError(
                f"{self.graph.name} takes other arguments by name",
                expected=", ".join(names) or "none", got=", ".join(named),
            )  # fmt: skip
        return (*arrays, *(named[name] for name in names))

    def inputs(self, *arrays: Any) -> list[np.ndarray]:
        """The arrays as the kernel takes them: in storage dtypes, rank 0 as one element, none
        without elements; the constants behind them."""
        if len(arrays) != len(self.graph.inputs):
            raise SpecError(
                f"{self.graph.name} takes {len(self.graph.inputs)} arrays", got=str(len(arrays))
            )
        given = [
            np.ascontiguousarray(as_input(a, v.spec, v.name)).reshape(v.spec.shape or (1,))
            for a, v in zip(arrays, self.graph.inputs, strict=True)
            if v.spec.size
        ]
        return [*given, *self.constants.values()]

    def results(self, given: Sequence[Any], arrays: Sequence[Any]) -> Any:
        """The results of the program or source for `arrays`, as the function gives it: one array
        or a tuple; what the function leaves in its arguments is written there."""
        graph, names = self.plan.graph, returned(self.plan.graph)
        values = [
            np.asarray(r).reshape(graph.specs[name].shape).view(graph.specs[name].storage)
            for r, name in zip(given, names, strict=True)
        ]
        made = dict(zip(names, values, strict=True))
        for name in {*graph.outputs, *(v for _, v in graph.writes)} - made.keys():
            made[name] = np.zeros(graph.specs[name].shape, graph.specs[name].storage)
        numbers = {v.name: number for number, v in enumerate(graph.inputs)}
        for name, value in graph.writes:
            arrays[numbers[name]][...] = made[value]
        outputs = tuple(made[name] for name in graph.outputs)
        return outputs[0] if len(outputs) == 1 else outputs or None


def compile(
    function: Callable[..., Any], *specs: Any, target: str = "trn2", nki: str = DEFAULT_VERSION,
    in_place: bool = False,
) -> Compiled:  # fmt: skip
    """The kernel of `function` for arguments like `specs` (arrays, Specs, "f32[128, 512]").

    `in_place`: arguments that the function writes to are changed where they are stored, if nothing
    reads them later. No document since 0.2 says that a kernel may write to a parameter: left out,
    such arguments are copied, and returned.

    Raises TraceError and its kin for what cannot be traced, CodegenError for what cannot be
    lowered yet, both at the user's line; LaunchError for a target or version that is none;
    ProgramError never, unless the fault is ours.

    >>> kernel = compile(lambda x: x * 2 + 1, "f32[256, 512]")
    >>> kernel.stats.instructions, kernel.stats.dmas
    (3, 2)
    """
    check_version(nki)
    known = resolve_target(target).name
    with fewer_collections:
        return compiled(trace(function, *specs, keeps_names=True), known, nki, in_place)


def compiled(traced: Graph, target: str, nki: str, in_place: bool = False) -> Compiled:
    """The kernel of a traced graph, its repeated steps as loops where those are supported."""
    with_loops = roll_loops(traced)
    why = why_unrolled(traced) if with_loops is traced else ""
    if with_loops is not traced:
        try:
            passes = {"traced": traced, **rewritten(with_loops, "rolled")}
            return lowered(passes, target, nki, in_place)
        except CodegenError as rejected:
            why = rejected.what  # the same steps without a loop, whose own errors are raised
    made = lowered(rewritten(traced), target, nki, in_place)
    made.plan.notes.extend([f"repeated steps are unrolled: {why}"] if why else [])
    return made


def roll_loops(graph: Graph) -> Graph:
    """The graph with a loop for every sequence of repeated steps that carry values."""
    while (steps := find_steps(graph)) is not None:
        graph = rolled(steps)
    return graph


def rewritten(graph: Graph, name: str = "traced") -> dict[str, Graph]:
    """The graph, under this name, and after every pass, by pass, in their order."""
    passes = {name: graph}
    for name, change in PASSES:
        before = list(passes.values())[-1]
        passes[name] = change(map_bodies(before, change))
    return passes


PASSES: tuple[tuple[str, Callable[[Graph], Graph]], ...] = (
    ("canonicalized", canonicalize),
    ("decomposed", decompose),
    ("in machine terms", in_machine_terms),
)
"""What every graph goes through, and the bodies of its loops before it."""


def lowered(passes: Mapping[str, Graph], target: str, nki: str, in_place: bool = False) -> Compiled:
    """The kernel of the last pass's graph. Raises CodegenError."""
    program, plan = generate(list(passes.values())[-1], target, nki, in_place)
    program, constants = constants_as_parameters(program)
    check(program)
    return Compiled(passes, plan, program, constants)


def check_version(nki: str) -> None:
    """Raises LaunchError for a version that kernels cannot be written for."""
    if nki not in WRITTEN:
        raise LaunchError(
            f"no kernel can be written for NKI {nki}", expected=f"one of {', '.join(WRITTEN)}",
            got=repr(nki),
        )  # fmt: skip
