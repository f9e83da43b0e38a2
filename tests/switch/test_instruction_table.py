"""`nki-run --trace FILE.parquet`: the profiler's table, and the SQL that its public pages name.

The queries are our own, after what these pages of the vendor compute from the same columns:
"Analyze Profile Output" and "Database Viewer" of Neuron Explorer in aws-neuron-sdk
(tools/neuron-explorer/how-to-analyze-profile-output.rst, overview-database-viewer.rst), and the
skill neuron-nki-profile-querying of aws-neuron/neuron-agentic-development (SKILL.md, steps 3a, 3b).
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from neuroncore.program import parse_program
from neuroncore.timeline import Timeline, estimate
from neuroncore.timeline.profiles.rows import columns
from nki_runtime.trace.instruction_table import VALUES, write_instruction_table

K, M, N, STEPS = 128, 64, 256, 6
PROGRAM = f"""\
program("trn2", "0.6")
def product(a: float32[{STEPS * K}, {M}], b: float32[{STEPS * K}, {N}], o: bfloat16[{M}, {N}]):
    sums = buffer(float32[{M}, {N}], psum)
    for i in range({STEPS}):
        left = buffer(float32[{K}, {M}], sbuf)
        dma_copy(dst=left[:, :], src=a[{K} * i : {K} * i + {K}, :])
        right = buffer(float32[{K}, {N}], sbuf)
        dma_copy(dst=right[:, :], src=b[{K} * i : {K} * i + {K}, :])
        tensor_scalar(dst=right[:, :], data=right[:, :], op0=multiply, operand0=2.0, engine=vector)
        nc_matmul(dst=sums[:, :], stationary=left[:, :], moving=right[:, :])
    transposed = buffer(float32[{M}, {K}], psum)
    last = buffer(float32[{K}, {M}], sbuf)
    dma_copy(dst=last[:, :], src=a[0:{K}, :])
    nc_transpose(dst=transposed[:, :], data=last[:, :], engine=tensor)
    result = buffer(bfloat16[{M}, {N}], sbuf)
    activation(dst=result[:, :], op=exp, data=sums[:, :], scale=1.0)
    dma_copy(dst=o[:, :], src=result[:, :])
    return o
"""
FLOPS = 2 * K * M * N * STEPS
READ, WRITTEN = STEPS * K * (M + N) * 4 + K * M * 4, M * N * 2


@pytest.fixture(params=["device", "as_written"])
def timeline(request: pytest.FixtureRequest) -> Timeline:
    return estimate(parse_program(PROGRAM), mode=request.param, skip_periods=False)


@pytest.fixture
def query(timeline: Timeline, tmp_path: Path) -> Any:
    """Runs a query on the table Instruction of the timeline."""
    write_instruction_table([timeline], tmp_path / "Instruction.parquet")
    table = pq.read_table(tmp_path / "Instruction.parquet").to_pydict()
    database = sqlite3.connect(":memory:")
    database.execute(f"CREATE TABLE Instruction ({', '.join(table)})")
    marks = ", ".join("?" * len(table))
    rows = zip(*table.values(), strict=True)
    database.executemany(f"INSERT INTO Instruction VALUES ({marks})", rows)
    return lambda text: database.execute(text).fetchall()


def test_every_column_is_written_or_has_a_reason():
    said = columns()

    assert list(VALUES) == list(said["written"])
    assert {*said["written"], *said["not_written"]} == {*said["columns"], *said["own"]}
    assert not set(said["written"]) & set(said["not_written"])


def test_a_column_has_its_unit(timeline, tmp_path):
    write_instruction_table([timeline], tmp_path / "t.parquet")

    fields = pq.read_schema(tmp_path / "t.parquet")
    units = {field.name: field.metadata[b"unit"].decode() for field in fields}
    assert units == columns()["written"]


def test_time_by_engine_and_opcode(query, timeline):
    """Analyze Profile Output: durations by engine and opcode."""
    found = query(
        "SELECT engine, opcode, COUNT(*), SUM(duration_ns) FROM Instruction GROUP BY 1, 2"
    )

    busy = Counter[str]()
    for engine, _, _, ns in found:
        busy[engine] += ns
    for engine in ("vector", "scalar"):
        assert busy[engine] == pytest.approx(timeline.lanes[engine].busy_ns)
    counts = {opcode: sum(n for _, o, n, _ in found if o == opcode) for _, opcode, _, _ in found}
    assert counts == {
        "DMA_COPY": 2 * STEPS + 2, "MATMUL": 2 * STEPS + 1, "ACTIVATION": 1, "TABLE_LOAD": 1,
        "TENSOR_SCALAR": STEPS,
        **({"LDWEIGHTS": 2 * STEPS + 1} if loads_weights(timeline) else {}),
    }  # fmt: skip


@pytest.mark.parametrize("engine", ["scalar", "vector"])
def test_waits_by_engine_are_the_stalls_of_the_estimate(query, timeline, engine):
    """neuron-nki-profile-querying, step 3a: what each engine waits for."""
    (found,) = query(f"SELECT SUM(evt_wait_time_ns) FROM Instruction WHERE engine LIKE '{engine}%'")

    stalls = timeline.lanes[engine].stalls
    waits = sum(ns for cause, ns in stalls.items() if cause.startswith(("data", "buffer")))
    assert found[0] == pytest.approx(waits)


def test_bytes_are_those_of_the_estimate(query, timeline):
    """The same page: bytes that are read from HBM and written to it."""
    found = query(
        "SELECT SUM(hbm_read_bytes), SUM(hbm_write_bytes), SUM(sbuf_write_bytes) FROM Instruction "
        "WHERE engine LIKE 'dma%'"
    )

    assert found == [(READ, WRITTEN, READ)]
    assert timeline.hbm_bytes == READ + WRITTEN


def test_an_engine_has_the_bytes_of_its_operands(query):
    found = query(
        "SELECT opcode, SUM(psum_read_bytes), SUM(sbuf_write_bytes), "
        "SUM(psum_read_sbuf_write_bytes) FROM Instruction WHERE engine = 'scalar' "
        "GROUP BY opcode ORDER BY opcode"
    )

    assert found == [("ACTIVATION", 4 * M * N, 2 * M * N, 4 * M * N), ("TABLE_LOAD", 0, 0, 0)]


def test_operations_are_those_of_the_estimate(query, timeline):
    """float32 has a quarter of the throughput of bfloat16; a product takes two multiplies."""
    found = query(
        "SELECT COUNT(*), SUM(raw_flops), SUM(adjusted_flops), SUM(flops_transpose) "
        "FROM Instruction WHERE tensor_instruction_type = 'REGULAR' AND opcode = 'MATMUL'"
    )

    assert found == [(2 * STEPS, FLOPS, 4 * FLOPS, 0)]
    assert timeline.flops == FLOPS


def test_both_multiplies_of_a_product_read_its_operands(query):
    (read,) = query(
        "SELECT SUM(sbuf_read_bytes), SUM(psum_write_bytes) FROM Instruction "
        "WHERE tensor_instruction_type = 'REGULAR'"
    )

    assert read == (2 * STEPS * K * 4 * (M + N), 2 * STEPS * 4 * M * N)


def test_weights_that_load_before_their_multiply(query, timeline):
    """The same page, step 3b: loads of weights and multiplies of the same instruction."""
    (pairs,) = query(
        "SELECT COUNT(*) FROM Instruction w JOIN Instruction m "
        "ON w.bir_id = m.bir_id AND m.id = w.id + 1 WHERE w.opcode = 'LDWEIGHTS' "
        "AND m.opcode = 'MATMUL' AND w.tensor_instruction_type = 'REGULAR' "
        "AND w.end_ts <= m.start_ts"
    )

    assert pairs == (2 * STEPS * loads_weights(timeline),)


def loads_weights(timeline: Timeline) -> bool:
    """Whether the loads of weights are micro-ops: in the order of a toolchain multiplies do it."""
    return timeline.mode == "as_written"


def test_the_lines_with_the_most_time(query, timeline):
    """The same page, step 3a, and Database Viewer: rows by a condition."""
    found = query(
        "SELECT raw_bir_id, operands, SUM(duration_ns) AS ns FROM Instruction "
        "WHERE engine = 'tensor' GROUP BY raw_bir_id ORDER BY ns DESC LIMIT 1"
    )

    matmul = [bar.busy_ns for bar in timeline.bars if bar.instruction == "nc_matmul"]
    number, operands, ns = found[0]
    assert (number, ns) == (3, pytest.approx(sum(matmul)))
    assert operands.startswith("dst=sums:float32[64,256] stationary=left:float32[128,64]")
