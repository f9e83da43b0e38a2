"""Plan files in few words, for the checker's tests."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from tokenplan.checker import CheckOptions, Report, check_plan, read_plan_file
from tokenplan.checker.queues import Queues, assign
from tokenplan.checker.unrolled import unroll


def access(buffer: str, mode: str, constant: int = 0, /, width: int = 4, **how: Any) -> dict:
    """`how`: coefficients of loops, and `box=[(extent, stride), …]`."""
    box = how.pop("box", [])
    return {
        "buffer": buffer, "mode": mode, "operand": "", "width": width, "opaque": None,
        "offset": {"constant": constant, "terms": how},
        "shape": [extent for extent, _ in box], "strides": [stride for _, stride in box],
    }  # fmt: skip


def op(name: str, *accesses: dict) -> dict:
    return {
        "op": name, "instruction": "copy", "engine": "vector", "accesses": list(accesses),
        "location": f"k.py:{len(name)}",
    }  # fmt: skip


def loop(name: str, trips: int, *body: dict) -> dict:
    return {
        "loop": name, "variable": name, "trips": trips, "start": 0, "step": 1, "location": "",
        "body": list(body),
    }  # fmt: skip


def edge(source: str, sink: str, *distance: int, kind: str = "RAW", status: str = "kept") -> dict:
    rule = "join" if kind == "join" else "isl"
    return {
        "from": source, "to": sink, "distance": list(distance), "kind": kind, "status": status,
        "rule": rule, "buffer": None, "witness": None, "assumes": [],
    }  # fmt: skip


def wait(
    waiting: str, queue: str, after: str, *distance: int, count: int, unit: int = 1, **per: int
) -> dict:
    return {
        "op": waiting, "queue": queue, "after": after, "distance": list(distance), "unit": unit,
        "count": {"constant": count, "terms": per}, "why": [],
    }  # fmt: skip


def buffers(*names: str, size: int = 64, **scoped: list[str]) -> list[dict]:
    """Buffers of 4-byte elements; those given by keyword have a scope."""
    made = [(name, []) for name in names] + list(scoped.items())
    return [
        {
            "id": name, "space": "hbm", "shape": [size // 4], "itemsize": 4, "scope": scope,
            "parameter": False, "dtype": "float32", "content": None,
        }
        for name, scope in made
    ]  # fmt: skip


def plan_file(
    held: list[dict], *body: dict, edges: Any = (), plan: dict | None = None, claims: Any = ()
) -> dict:
    return {
        "schema": "tokenplan/1", "kernel": "kernel", "target": "trn2", "nki": "0.6",
        "key": f"sha256:{'0' * 64}",
        "buffers": held, "body": list(body), "edges": list(edges), "claims": list(claims),
        "plan": plan, "assumptions": [], "diagnostics": [], "results": [],
        "stats": counted(edges),
    }  # fmt: skip


def counted(edges: Any) -> dict[str, int]:
    """What a file's stats say of its edges."""
    found = [edge["status"] for edge in edges]
    return {status: found.count(status) for status in ("kept", "implied")}


def plan(queues: dict[str, str], *waits: dict, **slots: int) -> dict:
    return {
        "queues": queues, "slots": slots, "waits": list(waits), "prefetch": {},
        "stages": [list(queues)],
    }  # fmt: skip


def text(file: dict) -> str:
    """The file; where little is counted, edges are counted again."""
    edges, stats = file["edges"], file["stats"]
    if isinstance(edges, list) and all(map(is_edge, edges)) and "pairs" not in (stats or ()):
        file = file | {"stats": counted(edges)}
    return json.dumps(file)


def is_edge(given: Any) -> bool:
    return isinstance(given, dict) and "status" in given


def queues(file: dict) -> Queues:
    """The queues of a file's plan, laid out."""
    read = read_plan_file(text(file))
    assert read.plan
    return assign(unroll(read), read.plan)


def check(file: dict, **options: Any) -> Report:
    return check_plan(read_plan_file(text(file)), CheckOptions(**options))


def codes(file: dict, **options: Any) -> list[str]:
    return [finding.code for finding in check(file, **options).findings]


@pytest.fixture
def made() -> SimpleNamespace:
    """Everything above."""
    builders = (access, op, loop, edge, wait, buffers, plan_file, plan, text, queues, check, codes)
    return SimpleNamespace(**{function.__name__: function for function in builders})


@pytest.fixture
def pipeline() -> dict:
    """Four tiles through one engine: in, work in place, out; two slots and the waits they need."""
    body = loop(
        "k", 4,
        op("load", access("a", "R", k=16, width=16), access("t", "W", width=16)),
        op("work", access("t", "R", width=16), access("t", "W", width=16)),
        op("store", access("t", "R", width=16), access("b", "W", k=16, width=16)),
    )  # fmt: skip
    waits = [
        wait("work", "in", "load", 0, count=1, k=1),
        wait("store", "vector", "work", 0, count=1, k=1),
        wait("load", "out", "store", 2, count=1, k=1),
    ]
    queues = {"load": "in", "work": "vector", "store": "out"}
    edges = [edge("load", "work", 0), edge("work", "store", 0)]
    edges.append(edge("load", "store", 0, status="implied"))
    return plan_file(buffers("a", "b", t=["k"]), body, edges=edges, plan=plan(queues, *waits, t=2))
