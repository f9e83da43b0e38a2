"""What people see of a plan: streams, suggestions, traces, the facts it rests on."""

from __future__ import annotations

import json
from itertools import groupby, pairwise

import pytest
from inline_snapshot import snapshot
from members import ROOT

from neuroncore.program import parse_program
from tokenplan import analyse
from tokenplan.cli.main import main
from tokenplan.neuroncore import (
    deal,
    facts_table,
    listing,
    machine,
    plan_with,
    play,
    schedule,
    schedule_text,
    suggestions,
    trace_json,
)

from .kernels import gemm

SCALE = """program("trn2", "0.6")
def scale(a: float32[512, 512], b: float32[512, 512]):
    for k in range(4):
        t = buffer(float32[128, 512], sbuf)
        u = buffer(float32[128, 512], sbuf)
        dma_copy(dst=t[:, :], src=a[128*k : 128*k + 128, :], name="load")
        tensor_scalar(dst=t[:, :], data=t[:, :], operand0=2.0, op0=multiply, name="double",
                      engine=vector)
        memset(dst=u[:, :], value=0.0, name="clear", engine=vector)
        dma_copy(dst=b[128*k : 128*k + 128, :], src=t[:, :], name="store")
        dma_copy(dst=a[128*k : 128*k + 128, :], src=u[:, :])
    return b
"""


def made(queues=None):
    program = parse_program(SCALE, "scale.txt")
    graph = analyse(program)
    return program, graph, plan_with(graph, {"t": 2, "u": 2}, queues or deal(graph.kernel))


def test_a_listing_says_what_each_stream_waits_for_and_counts():
    _, graph, plan = made()

    assert listing(graph.kernel, plan) == snapshot("""\
buffers in turn: t x2, u x2
loads ahead: k by 1
5 waits, none of which follows from the others (every iteration was followed)

stream dma0: each completion adds 16 to its counter, read by vector
  for k in range(4):
    wait dma1 >= 16*(k - 1)  # store 2 back in k: WAR t reused after 2
    dma_copy load  # scale.txt:6

stream dma1: each completion adds 16 to its counter, read by dma0
  for k in range(4):
    wait vector >= 2*k + 1  # double: RAW t
    dma_copy store  # scale.txt:10

stream dma2: each completion adds 16 to its counter, read by vector
  for k in range(4):
    wait vector >= 2*k + 2  # clear: RAW u
    dma_copy  # scale.txt:11

stream vector: each completion adds 1 to its counter, read by dma1, dma2
  for k in range(4):
    wait dma0 >= 16*(k + 1)  # load: RAW t
    tensor_scalar double  # scale.txt:7
    wait dma2 >= 16*(k - 1)  # dma_copy 2 back in k: WAR u reused after 2
    memset clear  # scale.txt:9\
""")


def test_a_scheduler_is_told_the_order_of_a_stream_that_data_leaves_open():
    _, graph, plan = made()

    assert suggestions(graph, plan) == [("clear", "double")]
    assert schedule_text(graph, plan) == snapshot("""\
kernel.with_schedule([  # (after, before)
    ("clear", "double"),
])\
""")


def test_a_scheduler_is_told_nothing_where_data_orders_all():
    graph = analyse(gemm(512, 32, 256, tile_n=16))

    assert suggestions(graph, plan_with(graph, {}, deal(graph.kernel))) == []


def test_instructions_without_a_name_are_pointed_out():
    program = parse_program(SCALE, "scale.txt")
    graph = analyse(program)
    shared = deal(graph.kernel) | {"store": "dma1", "dma_copy": "dma1"}

    text = schedule_text(graph, plan_with(graph, {}, shared))
    assert '("dma_copy", "store")' in text
    assert text.endswith("# give these a name= first: dma_copy")


def test_a_trace_has_a_track_per_queue_and_an_arrow_per_wait():
    program, graph, plan = made()
    events = json.loads(trace_json(graph, play(graph, plan, program)))["traceEvents"]

    tracks = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    slices = [e for e in events if e["ph"] == "X"]
    assert set(tracks.values()) >= set(plan.queues.values())
    assert len(slices) == 5 * 4
    assert {e["name"] for e in slices} == {"load", "double", "clear", "store", "dma_copy"}
    starts = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    assert starts and starts.keys() == ends.keys()
    assert {e["name"] for e in starts.values()} == {", ".join(w.why) for w in plan.waits}


def test_slices_last_as_long_as_the_timeline_says():
    program, graph, plan = made()
    played = play(graph, plan, program)
    events = json.loads(trace_json(graph, played))["traceEvents"]
    bars = played.timeline.bars

    slices = [e for e in events if e["ph"] == "X"]
    shown = {name: [e["dur"] for e in slices if e["name"] == name] for name in plan.queues}
    vector = [bar.busy_ns / 1e3 for bar in bars if bar.name == "double"]
    loads = [(bar.end_ns - bar.start_ns) / 1e3 for bar in bars if bar.name == "load"]
    assert shown["double"] == pytest.approx(vector, abs=1e-5)
    assert shown["load"] == pytest.approx(loads, abs=1e-5)


def test_slices_of_a_track_do_not_overlap():
    program, graph, plan = made()
    events = json.loads(trace_json(graph, play(graph, plan, program)))["traceEvents"]

    slices = sorted((e["tid"], e["ts"], e["ts"] + e["dur"]) for e in events if e["ph"] == "X")
    for _, each in groupby(slices, lambda found: found[0]):
        assert all(a[2] <= b[1] + 1e-6 for a, b in pairwise(each))


def test_what_the_machine_is_taken_to_do_has_a_source():
    table = list(facts_table())

    assert machine().step("dma3") == 16 and machine().step("vector") == 1
    assert len(table) > 5
    kinds = {row.split(" | ")[2] for row in table[2:]}
    assert kinds <= {"documented", "measured", "inferred", "assumed"}


def test_the_page_shows_the_facts_of_today():
    page = (ROOT / "docs" / "tokenplan-neuroncore.md").read_text("utf-8")
    _, _, rest = page.partition("<!-- facts: begin -->\n")
    shown, _, _ = rest.partition("\n<!-- facts: end -->")

    assert shown.splitlines() == list(facts_table())


@pytest.fixture
def text_file(tmp_path):
    file = tmp_path / "scale.txt"
    file.write_text(SCALE)
    return file


def test_explain_shows_the_schedule(text_file, capsys):
    assert main(["explain", str(text_file), "--schedule"]) == 0

    shown = capsys.readouterr().out
    assert "stream vector: each completion adds 1 to its counter" in shown
    assert "in one stream" in shown


def test_explain_writes_the_schedule_into_the_plan_file(text_file, capsys):
    assert main(["explain", str(text_file), "--schedule", "--output-format", "json"]) == 0

    program = parse_program(SCALE, "scale.txt")
    graph = analyse(program)
    assert json.loads(capsys.readouterr().out)["plan"] == schedule(graph, program).as_json()


def test_explain_writes_a_trace(text_file, tmp_path):
    file = tmp_path / "trace.json"
    told = ["--output-format", "perfetto", "-o", str(file)]

    assert main(["explain", str(text_file), *told]) == 0
    assert json.loads(file.read_text())["traceEvents"]
