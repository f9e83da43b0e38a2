"""The baseline kernel of a NumPy function: strip by strip, in the order of the function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from neuroncore.errors import Place, ProgramError
from neuroncore.program import Program, check
from neuroncore.surface import DEFAULT_VERSION
from neuroncore.targets import resolve_target
from nkigen_lite import trace
from nkigen_lite.codegen import Arrays, Writer, returned
from nkigen_lite.compiler.compile import check_version, rewritten
from nkigen_lite.fusion import Plan, plan_groups
from nkigen_lite.ir import Graph
from nkigym.baseline.errors import BaselineError
from nkigym.baseline.strips import strips_of
from nkigym.baseline.writer import write_strip


def baseline_kernel(
    function: Callable[..., Any], *specs: Any, target: str = "trn2", nki: str = DEFAULT_VERSION
) -> Program:
    """The baseline kernel of `function` for arguments like `specs`: "f32[128, 512]", arrays, Specs.

    The program is checked. Results are the function's, in order. See `nkigym.baseline`
    for what baseline means.

    >>> print(baseline(lambda a, b: a + b, "f32[256, 512]", "f32[256, 512]"), end="")
    program("trn2", "0.6")
    def function(x0: float32[256, 512], x1: float32[256, 512]):
        out = buffer(float32[256, 512], shared_hbm)
        for row in range(2):
            x0_tile = buffer(float32[128, 512], sbuf)
            dma_copy(dst=x0_tile[:, :], src=x0[128*row : 128*row + 128, :])
            x1_tile = buffer(float32[128, 512], sbuf)
            dma_copy(dst=x1_tile[:, :], src=x1[128*row : 128*row + 128, :])
            tensor_tensor(dst=x1_tile[:, :], data1=x0_tile[:, :], data2=x1_tile[:, :], op=add)
            dma_copy(dst=out[128*row : 128*row + 128, :], src=x1_tile[:, :])
        return out

    Raises TraceError and CodegenError as `nkigen_lite.compile`; BaselineError for sizes that are
    not a number of tiles, for operations that do not work on rows, and for rows that do not fit on
    chip.
    """
    return kernel_of(baseline_graph(function, *specs), target, nki)


def baseline_graph(function: Callable[..., Any], *specs: Any) -> Graph:
    """The graph that the baseline kernel is written from."""
    return list(rewritten(trace(function, *specs)).values())[-1]


def kernel_of(graph: Graph, target: str, nki: str) -> Program:
    """The checked kernel of a function's graph. Raises CodegenError, BaselineError."""
    check_version(nki)
    known = resolve_target(target)
    plan = plan_groups(graph, known, across=False)
    program = _written(plan, Writer(graph.name, known.name, nki))
    try:
        check(program)
    except ProgramError as wrong:
        raise BaselineError(
            f"the baseline kernel of {graph.name} cannot run", got=str(wrong)
        ) from wrong
    return program


def _origin(graph: Graph, value: str) -> Place | None:
    return graph.by_name[value].origin if value in graph.by_name else None


def _written(plan: Plan, writer: Writer) -> Program:
    arrays = Arrays(plan, writer)
    graph, order = plan.graph, [n.name for n in plan.graph.nodes]
    for strip in strips_of(plan):
        for value in sorted(strip.stored, key=order.index):
            arrays.place(value)
        write_strip(writer, plan, strip, arrays)
    results: list[str] = []
    for value in returned(graph):
        if value not in arrays.direct and arrays.shown.get(plan.base_of(value)) != value:
            raise BaselineError(
                "a result is another look at an array", expected="results that the function makes",
                got=f"{value}: {graph.specs[value]}", place=_origin(graph, value),
            )  # fmt: skip
        results.append(arrays.result(value, results))
    return writer.finish(tuple(results))
