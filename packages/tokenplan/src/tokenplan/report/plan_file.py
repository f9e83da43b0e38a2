"""The plan file `tokenplan/1`: canonical JSON, described by `plan.schema.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from neuroncore.documents import parse_json, wrong_structure
from neuroncore.errors import LaunchError, Place
from neuroncore.layout import Swizzle
from neuroncore.program import Affine
from tokenplan.graph.canonical_key import key_of
from tokenplan.graph.diagnostics import Diagnostic
from tokenplan.graph.token_graph import (
    Claim,
    Counts,
    Edge,
    Join,
    MayAlias,
    Parallel,
    Pipeline,
    TokenGraph,
    Witness,
)
from tokenplan.kernel.model import PLAIN, Access, Buffer, Kernel, Loop, Mode, Node, Op

SCHEMA = "tokenplan/1"

Json = dict[str, Any]


def schema() -> Json:
    """The JSON Schema of the plan file."""
    text = files("tokenplan").joinpath("plan.schema.json").read_text("utf-8")
    return json.loads(text)


def write(graph: TokenGraph, plan: Mapping[str, Any] | None = None) -> str:
    """The plan file: the same bytes for the same graph and plan.

    `plan`: the schedule as JSON, such as AsyncPlan.as_json() gives it. Seconds are left out.
    """
    return json.dumps(as_json(graph, plan), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def as_json(graph: TokenGraph, plan: Mapping[str, Any] | None = None) -> Json:
    """The plan file as an object."""
    kernel = graph.kernel
    return {
        "schema": SCHEMA,
        "kernel": kernel.name,
        "target": kernel.target,
        "nki": kernel.nki,
        "key": key_of(graph),
        "buffers": [_buffer(buffer) for buffer in kernel.buffers.values()],
        "body": [_node(node) for node in kernel.body],
        "results": list(kernel.results),
        "claims": [_claim(claim) for claim in graph.claims],
        "edges": [_edge(edge) for edge in graph.edges],
        "plan": None if plan is None else dict(plan),
        "assumptions": list(graph.assumptions),
        "diagnostics": [
            {"code": d.code, "text": d.text} | ({"place": d.place} if d.place else {})
            for d in graph.diagnostics
        ],
        "stats": _stats(graph),
    }


def read(text: str) -> tuple[TokenGraph, Json | None]:
    """The graph of a plan file and its schedule, if it has one.

    Raises LaunchError for text that is not such a file.
    """
    try:
        found = parse_json(text)
    except ValueError as wrong:
        raise LaunchError("the plan file is not JSON", got=str(wrong)) from None
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        got = found.get("schema") if isinstance(found, dict) else type(found).__name__
        raise LaunchError(
            "this is not a plan file", expected=f'"schema": "{SCHEMA}"', got=repr(got)
        )
    try:
        return _graph(found), found["plan"]
    except (KeyError, TypeError, ValueError, AttributeError) as wrong:
        raise LaunchError(
            "the plan file is damaged",
            got=wrong_structure(wrong),
            hint="it does not follow plan.schema.json: make it again from the kernel",
        ) from None


# -- writing ---------------------------------------------------------------------------------------


def _buffer(buffer: Buffer) -> Json:
    return {
        "id": buffer.id,
        "space": buffer.space,
        "shape": list(buffer.shape),
        "itemsize": buffer.itemsize,
        "scope": list(buffer.scope),
        "parameter": buffer.is_parameter,
        "dtype": buffer.dtype,
        "content": buffer.content,
    }


def _node(node: Node) -> Json:
    if isinstance(node, Loop):
        return {
            "loop": node.id,
            "variable": node.variable,
            "trips": node.trips,
            "start": node.start,
            "step": node.step,
            "location": location(node.place),
            "body": [_node(inner) for inner in node.body],
        }
    return {
        "op": node.id,
        "instruction": node.instruction,
        "engine": node.engine,
        "details": dict(node.details),
        "location": location(node.place),
        "accesses": [_access(access) for access in node.accesses],
    }


def location(place: Place | None) -> str:
    """file:line, or nothing."""
    return f"{place.file}:{place.line}" if place else ""


def _access(access: Access) -> Json:
    found: Json = {
        "buffer": access.buffer,
        "mode": access.mode.value,
        "operand": access.operand,
        "offset": {"constant": access.offset.constant, "terms": dict(access.offset.terms)},
        "shape": list(access.shape),
        "strides": list(access.strides),
        "width": access.width,
        "opaque": access.opaque,
    }
    if access.swizzle:
        swizzle = access.swizzle
        found["swizzle"] = {"columns": list(swizzle.columns), "constant": swizzle.constant}
    return found


def _claim(claim: Claim) -> Json:
    match claim:
        case Parallel(loop):
            return {"loop": loop, "claim": "parallel"}
        case Pipeline(loop, depth):
            return {"loop": loop, "claim": "pipeline", "depth": depth}
        case Join(source, sink):
            return {"join": [source, sink]}
        case MayAlias(tensors):
            return {"may_alias": list(tensors)}


def _edge(edge: Edge) -> Json:
    witness = edge.witness
    return {
        "from": edge.source,
        "to": edge.sink,
        "distance": list(edge.distance),
        "kind": edge.kind,
        "status": edge.status,
        "rule": edge.rule,
        "buffer": edge.buffer or None,
        "witness": witness
        and {
            "buffer": witness.buffer,
            "byte": witness.byte,
            "element": list(witness.element),
            "from": dict(witness.source),
            "to": dict(witness.sink),
        },
        "assumes": list(edge.assumes),
    }


def _stats(graph: TokenGraph) -> Json:
    counts = graph.counts
    found: Json = {status: len(graph.with_status(status)) for status in ("kept", "implied")}
    if counts is None:
        return found
    return found | {
        "total_order": counts.total_order,
        "pairs": counts.pairs,
        "removed": counts.removed,
        "rules": dict(counts.rules),
        "untested": counts.untested,
        "conflicts": counts.conflicts,
    }


# -- reading ---------------------------------------------------------------------------------------


def _graph(found: Json) -> TokenGraph:
    buffers = {
        b["id"]: Buffer(
            b["id"], b["space"], tuple(b["shape"]), b["itemsize"], tuple(b["scope"]),
            b["parameter"], b["dtype"], b["content"],
        )
        for b in found["buffers"]
    }  # fmt: skip
    body = tuple(_read_node(node, ()) for node in found["body"])
    results = tuple(found["results"])
    kernel = Kernel(found["kernel"], found["target"], buffers, body, results, found["nki"])
    return TokenGraph(
        kernel,
        tuple(map(_read_edge, found["edges"])),
        tuple(map(_read_claim, found["claims"])),
        tuple(found["assumptions"]),
        tuple(Diagnostic(d["code"], d["text"], d.get("place", "")) for d in found["diagnostics"]),
        _read_counts(found["stats"]),
    )


def _read_node(node: Json, loops: tuple[str, ...]) -> Node:
    place = _read_place(node["location"])
    if "loop" in node:
        inside = (*loops, node["loop"])
        body = tuple(_read_node(inner, inside) for inner in node["body"])
        return Loop(
            node["loop"], node["variable"], node["trips"], node["start"], node["step"], body, place
        )
    accesses = tuple(map(_read_access, node["accesses"]))
    details = tuple(sorted(node.get("details", {}).items()))
    return Op(node["op"], node["instruction"], node["engine"], loops, accesses, details, place)


def _read_place(text: str) -> Place | None:
    file, _, line = text.rpartition(":")
    return Place(file, int(line)) if file else None


def _read_access(found: Json) -> Access:
    offset, swizzle = found["offset"], found.get("swizzle")
    return Access(
        found["buffer"],
        Mode(found["mode"]),
        Affine(offset["constant"], tuple(sorted(offset["terms"].items()))),
        tuple(found["shape"]),
        tuple(found["strides"]),
        found["width"],
        found["operand"],
        found["opaque"],
        Swizzle(tuple(swizzle["columns"]), swizzle["constant"]) if swizzle else PLAIN,
    )


def _read_claim(found: Json) -> Claim:
    if "join" in found:
        return Join(*found["join"])
    if "may_alias" in found:
        return MayAlias(tuple(found["may_alias"]))
    if found["claim"] == "parallel":
        return Parallel(found["loop"])
    return Pipeline(found["loop"], found["depth"])


def _read_edge(found: Json) -> Edge:
    witness = found["witness"]
    return Edge(
        found["from"],
        found["to"],
        tuple(found["distance"]),
        found["kind"],
        found["status"],
        found["rule"],
        found.get("buffer") or "",
        witness
        and Witness(
            witness["buffer"], witness["byte"], tuple(witness["element"]), witness["from"],
            witness["to"],
        ),
        tuple(found["assumes"]),
    )  # fmt: skip


def _read_counts(stats: Json) -> Counts | None:
    if "pairs" not in stats:
        return None
    return Counts(
        stats["total_order"], stats["pairs"], stats["rules"], stats["untested"], stats["conflicts"]
    )
