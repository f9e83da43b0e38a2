"""What can be wrong with a kernel, a claim or a plan file: one report each, by the command."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from neuroncore.errors import LaunchError
from neuroncore.program import Program
from tokenplan import analyse
from tokenplan.cli import main
from tokenplan.report.codes import PAGES

HEAD = 'program("trn2", "0.6")\n'
RECURRENCE = (
    HEAD
    + """def recurrence(a: float32[2048, 512]):
    for k in range(8):
        t = buffer(float32[128, 512], sbuf)
        dma_copy(dst=t[:, :], src=a[128*k : 128*k + 128, :], name="load")
        dma_copy(dst=a[128*k + 128 : 128*k + 256, :], src=t[:, :], name="store")
    return a
"""
)
SQUARE = (
    HEAD
    + """def square(a: float32[2048, 512]):
    for k in range(4):
        t = buffer(float32[128, 512], sbuf)
        dma_copy(dst=t[:, :], src=a[128*k*k : 128*k*k + 128, :], name="load")
    return a
"""
)
OUTSIDE = (
    HEAD
    + """def outside(a: float32[128, 512]):
    for k in range(4):
        t = buffer(float32[128, 512], sbuf)
        dma_copy(dst=t[:, :], src=a[128*k : 128*k + 128, :], name="load")
    return a
"""
)
GATHER = (
    HEAD
    + """def gather(a: float32[64, 16], which: int32[8, 1], x: float32[64, 16], y: float32[64, 16]):
    rows = buffer(int32[8, 1], sbuf)
    dma_copy(dst=rows[:, :], src=which[:, :], name="index")
    for k in range(3):
        t = buffer(float32[8, 16], sbuf)
        dma_copy(dst=t[:, :], src=a.ap([[16, 8], [1, 16]], vector_offset=rows[:, :], dim=0))
        dma_copy(dst=a[8*k : 8*k + 8, :], src=x[8*k : 8*k + 8, :], name="write")
        dma_copy(dst=y[8*k : 8*k + 8, :], src=t[:, :], name="out")
    return y
"""
)
OVERLAPPING = (
    HEAD
    + """def over(a: float32[64, 16], x: float32[15, 2, 16], y: float32[15, 2, 16]):
    for k in range(4):
        dma_copy(dst=a.ap([[8, 15], [8, 2], [1, 16]], 16*k), src=x[:, :, :], name="store")
        dma_copy(dst=y[:, :, :], src=a.ap([[8, 15], [8, 2], [1, 16]], 16*k + 8), name="load")
    return y
"""
)
COPIES = (
    HEAD
    + """def copies(a: float32[2048, 512], b: float32[2048, 512]):
    for k in range(8):
        dma_copy(dst=b[128*k : 128*k + 128, :], src=a[128*k : 128*k + 128, :], name="copy")
    return b
"""
)


@dataclass
class Said:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def all(self) -> str:
        return self.out + self.err


@pytest.fixture
def tokenplan(tmp_path: Path, capsys):
    """Runs the command; names with a dot are files, which the keyword arguments hold."""

    def run(*arguments: str, **files: str | bytes) -> Said:
        for name, content in files.items():
            file = tmp_path / name.replace("_", ".")
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
        given = [str(tmp_path / a) if (tmp_path / a).is_file() else a for a in arguments]
        try:
            code = main(given)
        except SystemExit as stop:
            code = int(stop.code or 0)
        said = capsys.readouterr()
        assert "Traceback" not in said.out + said.err
        return Said(code, said.out, said.err)

    return run


def test_an_index_that_is_not_affine_is_pointed_at(tokenplan):
    said = tokenplan("explain", "square.txt", square_txt=SQUARE)
    assert (said.code, said.out) == (1, "")
    assert "square.txt:5:37: not an affine expression" in said.err
    assert "expected: constants times loop variables, added up" in said.err


def test_an_index_that_the_device_reads_keeps_its_orders_and_says_so(tokenplan):
    said = tokenplan("explain", "gather.txt", gather_txt=GATHER)
    assert said.code == 0
    assert "W1: which bytes of a dma_copy accesses is not known" in said.out
    assert "which keeps 2 orders" in said.out
    assert "write -> dma_copy  1 iteration of k later" in said.out


def test_an_index_outside_its_tensor_is_pointed_at(tokenplan):
    said = tokenplan("explain", "outside.txt", outside_txt=OUTSIDE)
    assert (said.code, said.out) == (1, "")
    assert "outside.txt:5:9: dma_copy: the access leaves a" in said.err


def test_unknown_aliasing_is_an_assumption_or_kept_where_it_is_allowed(tokenplan):
    said = tokenplan("explain", "copies.txt", copies_txt=COPIES)
    assert said.code == 0 and "W2: parameters a and b are distinct tensors" in said.out
    assert "0 orders to keep" in said.out
    said = tokenplan("explain", "copies.txt", "--may-alias", "a,b")
    assert said.code == 0 and "W6: it is allowed that a and b share bytes" in said.out
    assert "copy -> copy  1 iteration of k later" in said.out


def test_strides_that_overlap_keep_their_orders(tokenplan, tmp_path):
    said = tokenplan("explain", "over.txt", over_txt=OVERLAPPING)
    assert said.code == 0
    for order in ("store -> load  in the same iteration", "load -> store  1 iteration of k later"):
        assert order in said.out
    plan = str(tmp_path / "plan.json")
    assert tokenplan("explain", "over.txt", "--output-format", "json", "-o", plan).code == 0
    assert tokenplan("check", "plan.json", "--mutate").out.endswith("all of it holds\n")


@pytest.mark.parametrize(
    ("claim", "code", "words"),
    [
        ("k=parallel", "E2", "iterations of loop k are claimed to be parallel, but store"),
        ("k=pipeline(2)", "E3", "only pipeline(1) holds"),
    ],
)  # fmt: skip
def test_a_false_claim_has_a_witness_and_a_page(tokenplan, claim, code, words):
    said = tokenplan("explain", "recurrence.txt", "--claim", claim, recurrence_txt=RECURRENCE)
    assert said.code == 1
    assert words in said.out
    assert "store (recurrence.txt:6) at k = 0 and load (recurrence.txt:5) at k = 1" in said.out
    assert "share a[128, 0]" in said.out
    assert f"(tokenplan explain-code {code}: what to do about it)" in said.out
    assert tokenplan("explain-code", code).out.startswith(f"{code}: ")


def test_a_false_claim_in_a_plan_file_is_found_again(tokenplan, tmp_path):
    plan = str(tmp_path / "plan.json")
    told = ("--claim", "k=parallel", "--output-format", "json", "-o", plan)
    assert tokenplan("explain", "recurrence.txt", *told, recurrence_txt=RECURRENCE).code == 1
    said = tokenplan("check", "plan.json")
    assert said.code == 1
    assert "E2 loop k is not parallel: store[k=0] must be done before load[k=1]" in said.out


@pytest.mark.parametrize(
    "claim", ["k=pipeline(0)", "k=pipeline(99999999999)", "k=pipeline(-1)", "k=fast", "m=parallel"]
)
def test_a_claim_that_claims_nothing_is_a_mistake_in_the_options(tokenplan, claim):
    said = tokenplan("explain", "recurrence.txt", "--claim", claim, recurrence_txt=RECURRENCE)
    assert (said.code, said.out) == (2, "")
    assert "expected: " in said.err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[]", "schema: expected 'tokenplan/1', got None"),
        (b'{"schema": "tokenplan/2"}', "schema: expected 'tokenplan/1', got 'tokenplan/2'"),
        (b'{"schema": "tokenplan/1"}', "the file: no kernel, target, nki, key,"),
        (b'{"traceEvents": []}', "schema: expected 'tokenplan/1', got None"),
        (b'{"a": ' * 3000, "not JSON"),
    ],
    ids=["empty", "bytes", "a list", "another", "nothing in it", "a trace", "deep"],
)
def test_a_file_that_is_no_plan_is_one_line_and_exit_code_2(tokenplan, content, words):
    said = tokenplan("check", "plan.json", plan_json=content)
    assert (said.code, said.out) == (2, "")
    assert words in said.err and said.err.count("\n") == 1


def test_files_that_cannot_be_read_or_written_are_one_line(tokenplan, tmp_path):
    for arguments, files in (
        (("check", "nowhere.json"), {}),
        (("explain", "bytes.txt"), {"bytes_txt": b"\xff\xfe"}),
        (("explain", "copies.txt", "-o", str(tmp_path)), {"copies_txt": COPIES}),
    ):
        said = tokenplan(*arguments, **files)
        assert (said.code, said.out) == (2, "")
        assert said.err.count("\n") == 1, said.err


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        (lambda f: f["edges"].remove(next(e for e in f["edges"] if e["status"] == "kept")), "E1"),
        (lambda f: next(e for e in f["edges"] if e["witness"]).update(kind="WAR"), "E4"),
        (lambda f: f["stats"].update(conflicts=99), "E4"),
        (lambda f: f["plan"]["waits"].pop(), "E1"),
        (lambda f: f["plan"]["waits"][0]["count"].update(constant=10_000), "E5"),
        (lambda f: f.update(key="sha256:" + "0" * 64), "E4"),
        (lambda f: f["body"][0]["body"][0].update(instruction="tensor_copy"), "E4"),
        (lambda f: f["buffers"][0].update(dtype="int32"), "E4"),
    ],
    ids=["order", "kind", "count", "wait", "deadlock", "key", "instruction", "dtype"],
)
def test_a_plan_that_was_edited_is_found_out_with_code_and_page(tokenplan, tmp_path, broken, code):
    plan = tmp_path / "plan.json"
    told = ("--schedule", "--output-format", "json", "-o", str(plan))
    assert tokenplan("explain", "recurrence.txt", *told, recurrence_txt=RECURRENCE).code == 0
    assert tokenplan("check", "plan.json").code == 0
    file = json.loads(plan.read_text("utf-8"))
    broken(file)
    plan.write_text(json.dumps(file))
    said = tokenplan("check", "plan.json")
    assert said.code == 1
    assert re.search(rf"^{code} ", said.out, re.MULTILINE)
    assert re.search(
        r"^\(tokenplan explain-code E\d: what to do about it\)$", said.out, re.MULTILINE
    )


@pytest.mark.parametrize("code", PAGES)
def test_every_code_has_a_page(tokenplan, code):
    said = tokenplan("explain-code", code)
    assert said.code == 0 and said.out.startswith(f"{code}: {PAGES[code].title}\n\n")


def test_an_unknown_code_is_a_mistake_in_the_options(tokenplan):
    said = tokenplan("explain-code", "E99")
    assert said.code == 2 and "'E99' is none of E1, " in said.err


@pytest.mark.parametrize("what", [None, 3, "k", [], print, Program])
def test_what_is_no_program_is_not_analysed(what):
    with pytest.raises(LaunchError, match="this is not a program"):
        analyse(what)
