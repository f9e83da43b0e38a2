"""Pictures that other programs open: DOT for Graphviz, trace events for Perfetto."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import pytest

from neuroncore.program import parse_program
from tokenplan import analyse
from tokenplan.cli import main
from tokenplan.kernel.model import Op
from tokenplan.report import dot

PIPELINE = """program("trn2", "0.6")
def pipeline(a: float32[1024, 512], b: float32[1024, 512]):
    for k in range(4):
        t = buffer(float32[128, 512], sbuf)
        dma_copy(dst=t[:, :], src=a[128*k : 128*k + 128, :], name="load")
        for m in range(2):
            tensor_scalar(dst=t[:, :], data=t[:, :], operand0=2.0, op0=multiply, name="twice")
        dma_copy(dst=b[128*k : 128*k + 128, :], src=t[:, :], name="store")
    return b
"""
PROGRAM = parse_program(PIPELINE)
TOKENS = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[A-Za-z_][A-Za-z_0-9]*|->|[{}\[\];=,])', re.DOTALL)


class Dot:
    """A reader of the DOT language, as much of its grammar as a digraph needs."""

    def __init__(self, text: str) -> None:
        self.tokens, at = [], 0
        while text[at:].strip():
            found = TOKENS.match(text, at)
            assert found, f"no token of DOT: {text[at : at + 40]!r}"
            self.tokens.append(found[1])
            at = found.end()
        self.nodes: set[str] = set()
        self.edges: list[tuple[str, str]] = []
        self.take("digraph")
        self.name()
        self.statements()
        assert not self.tokens

    def take(self, *expected: str) -> str:
        assert self.tokens and (not expected or self.tokens[0] in expected), self.tokens[:5]
        return self.tokens.pop(0)

    def name(self) -> str:
        found = self.take()
        assert found[0] == '"' or found.isidentifier(), found
        return found

    def statements(self) -> None:
        self.take("{")
        while self.tokens[0] != "}":
            self.statement()
        self.take("}")

    def statement(self) -> None:
        if self.tokens[0] == "subgraph":
            self.take()
            self.name()
            self.statements()
            return
        one = self.name()
        if self.tokens[0] == "=":
            self.take()
            self.name()
        elif self.tokens[0] == "->":
            self.take()
            self.edges.append((one, self.name()))
            self.attributes()
        else:
            self.nodes |= {one} - {"node"}
            self.attributes()
        self.take(";")

    def attributes(self) -> None:
        self.take("[")
        while self.tokens[0] != "]":
            self.name()
            self.take("=")
            self.name()
            if self.tokens[0] == ",":
                self.take()
        self.take("]")


@pytest.mark.parametrize("may_alias", [[], [("a", "b")]], ids=["distinct", "may alias"])
@pytest.mark.parametrize("verbose", [False, True])
def test_the_picture_is_legal_dot(may_alias, verbose):
    graph = analyse(PROGRAM, may_alias=may_alias)
    read = Dot(dot(graph, verbose))
    assert len(read.nodes) == 3
    assert {name for edge in read.edges for name in edge} <= read.nodes
    assert len(read.edges) <= len(graph.edges)


def test_names_with_quotes_and_backslashes_stay_one_label():
    graph = analyse(PROGRAM)
    loop = graph.kernel.body[0]
    odd = 'a "tile" \\'

    def renamed(node):
        if isinstance(node, Op):
            return replace(node, engine=odd)
        return replace(node, variable=odd, body=tuple(map(renamed, node.body)))

    kernel = replace(graph.kernel, name=odd, body=(renamed(loop),))
    assert len(Dot(dot(replace(graph, kernel=kernel))).nodes) == 3


@pytest.mark.skipif(not shutil.which("dot"), reason="Graphviz is not installed")
def test_graphviz_draws_it():
    text = dot(analyse(PROGRAM))
    drawn = subprocess.run(["dot", "-Tsvg"], input=text, capture_output=True, text=True, check=True)
    assert drawn.stdout.count('class="node"') == 3


@pytest.fixture
def trace_file(tmp_path):
    text, file = tmp_path / "pipeline.txt", tmp_path / "trace.json"
    text.write_text(PIPELINE)
    told = ("--output-format", "perfetto", "-o", str(file))
    assert main(["explain", str(text), *told]) == 0
    return file


def test_the_trace_has_a_slice_per_instance_on_a_named_track_and_none_overlap(trace_file):
    events = json.loads(trace_file.read_text("utf-8"))["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X", "s", "f"}
    named = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    tracks = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            assert event["dur"] > 0 and event["ts"] >= 0
            tracks[event["tid"]].append((event["ts"], event["ts"] + event["dur"], event["name"]))
    assert tracks.keys() == named.keys()
    assert sum(map(len, tracks.values())) == 4 * (1 + 2 + 1)
    for slices in tracks.values():
        slices.sort()
        assert all(a[1] <= b[0] + 1e-6 for a, b in pairwise(slices))


def test_arrows_lead_from_a_slice_to_one_that_starts_when_it_is_done(trace_file):
    events = json.loads(trace_file.read_text("utf-8"))["traceEvents"]
    slices = {(e["tid"], e["ts"]): e["ts"] + e["dur"] for e in events if e["ph"] == "X"}
    ends = {ph: {e["id"]: e for e in events if e["ph"] == ph} for ph in "sf"}
    assert ends["s"] and ends["s"].keys() == ends["f"].keys()
    for number, start in ends["s"].items():
        end = ends["f"][number]
        assert (end["tid"], end["ts"]) in slices
        assert slices[start["tid"], start["ts"]] <= end["ts"] + 1e-6
        assert (start["name"], start["cat"]) == (end["name"], end["cat"])


@pytest.mark.skipif(
    not shutil.which("trace_processor_shell"), reason="Perfetto's trace processor is not installed"
)
def test_perfetto_reads_the_trace(trace_file):
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

    config = TraceProcessorConfig(bin_path=shutil.which("trace_processor_shell"))
    with TraceProcessor(trace=str(trace_file), config=config) as processor:
        names = sorted(vars(row)["name"] for row in processor.query("select name from slice"))
        flows = len(list(processor.query("select id from flow")))
    assert names == sorted(["load", "store"] * 4 + ["twice"] * 8)
    assert flows > 0
