"""A kernel explained in text: what each pass made, the fusion groups, refusals, cost."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING

from nkigen_lite.ir import Graph, print_graph

if TYPE_CHECKING:
    from nkigen_lite.compile import Compiled
    from nkigen_lite.lower import Plan
    from nkigen_lite.stats import Stats

_ARRAY = re.compile(r"'([\w+/]{24})[\w+/=]+'")
"""The bytes of a constant, as graphs print them."""


def explained(kernel: Compiled) -> str:
    """Everything about a kernel but its source."""
    parts = (passes_text(kernel.passes), plan_text(kernel.plan), stats_text(kernel.stats))
    return "\n".join(parts)


def passes_text(passes: Mapping[str, Graph]) -> str:
    """Every pass's graph; one that changed nothing is named only, arrays are cut short."""
    parts, before = [], ""
    for name, graph in passes.items():
        text = _ARRAY.sub(r"'\1…'", print_graph(graph))
        parts.append(f"== {name} ==\n" + ("(as before)\n" if text == before else text))
        before = text
    return "\n".join(parts)


def plan_text(plan: Plan) -> str:
    """The fusion groups in the order in which they run, and why there is more than one."""
    groups = [f"group {number}: {group}" for number, group in enumerate(plan.groups)]
    lines = ["== fusion groups ==", *(groups or ["none: results are only views of arguments"])]
    lines += [*plan.strips, *plan.notes]
    if plan.refusals:
        lines += ["", "== not fused =="]
        for refusal in plan.refusals:
            place = refusal.node.origin
            lines.append(
                f"{refusal} ({PurePath(place.file).name}:{place.line})" if place else f"{refusal}"
            )
    return "\n".join([*lines, ""])


def stats_text(stats: Stats) -> str:
    """What one execution costs."""
    return (
        "== cost ==\n"
        f"{stats.instructions} instructions, {stats.dmas} of them DMAs\n"
        f"{stats.hbm_bytes} bytes of HBM read and written\n"
        f"{stats.peak_sbuf_bytes_per_partition} bytes of SBUF per partition, "
        f"{stats.psum_banks} banks of PSUM\n"
        f"{stats.predicted_us:.1f} us predicted, without the launch\n"
    )
