"""Malformed files of every kind end in exit code 0, 1 or 2 and a message, never in a traceback of
ours, and change nothing."""

from __future__ import annotations

import contextlib
import io
import json
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.programs.texts import COPY

from neuroncore.program import parse_program
from nkigym import certificate, matmul_root, rewrite_graph
from nkigym.baseline import baseline_kernel
from nkigym.tile_rewrites import descend
from nkigym.transforms import TransformStep, apply, certify
from tokenplan import analyse, read
from tokenplan.report.plan_file import write

SEED = 25
QUICK, THOROUGH, COMMANDS = 50, 10_000, 18
KERNEL = """\
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def copy(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(4):
        nisa.dma_copy(dst=out, src=x)
    return out
"""
NOTEBOOK = {
    "cells": [
        {"cell_type": "code", "metadata": {}, "outputs": [], "source": KERNEL.splitlines(True)}
    ],
    "metadata": {"language_info": {"name": "python"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}
FACTS = {
    "schema": "nki-facts/1",
    "kernels": [
        {
            "file": "k.py",
            "kernel": "copy",
            "runs": 1,
            "expressions": [
                {"line": 7, "column": 10, "end_line": 7, "end_column": 66, "kind": "tensor",
                 "shape": [128, 512], "dtype": "float32", "memory": "hbm"}
            ],
        }
    ],
}  # fmt: skip
CONFIG = """\
[tool.nki-migrate]
from = "auto"
select = ["NKI1"]
unsafe-fixes = true

[tool.nki-migrate.per-file-ignores]
"k.py" = ["NKI2001"]
"""
CASES = """\
[[case]]
file = "k.py"
kernel = "copy"
reference = "references.py:copy"
args = [{ name = "x", shape = [4, 4], dtype = "float32" }]
"""


SWEEP = """\
[sweep]
budget = 60
targets = ["trn2"]

[[function]]
name = "none.py:matmul"
shapes = [["bf16[256,256]", "bf16[256,1024]"]]
"""


def _tile_certificate() -> str:
    space = rewrite_graph(matmul_root(1, 2, 1))
    return certificate(space, descend(space)[0]).to_json()


def _step_certificate() -> str:
    start = baseline_kernel(lambda a, b: a * b, "f32[512, 512]", "f32[512, 512]")
    cut = apply(start, TransformStep("distribute", (1,), (("cut", 4),)))
    return json.dumps(certify(cut, TransformStep("join", (3,))).to_json())


@dataclass(frozen=True)
class Kind:
    """A file of a command: its name, a sound text, and the words of the command."""

    file: str
    text: str
    main: str
    words: tuple[str, ...]


KINDS = {
    "source": Kind("k.py", KERNEL, "nki_migrate.cli", ("check", "k.py")),
    "notebook": Kind(
        "n.ipynb", json.dumps(NOTEBOOK), "nki_migrate.cli", ("check", "--notebooks", "n.ipynb")
    ),
    "facts": Kind(
        "f.json", json.dumps(FACTS), "nki_migrate.cli", ("check", "k.py", "--facts", "f.json")
    ),
    "configuration": Kind("pyproject.toml", CONFIG, "nki_migrate.cli", ("check", "k.py")),
    "named configuration": Kind(
        "c.toml", CONFIG, "nki_migrate.cli", ("check", "k.py", "--config", "c.toml")
    ),
    "assumptions": Kind(
        "a.txt", "copy.x: shape=(S, 128), dtype=bf16\n", "nki_migrate.cli",
        ("check", "k.py", "--assume-file", "a.txt"),
    ),
    "cases": Kind(
        "cases.toml", CASES, "nki_migrate.cli", ("verify", "k.py", "k.py", "--entry", "none")
    ),
    "program text": Kind("p.txt", COPY, "tokenplan.cli", ("explain", "p.txt")),
    "plan": Kind(
        "plan.json", write(analyse(read(parse_program(COPY)))), "tokenplan.cli",
        ("check", "plan.json", "--random", "3"),
    ),
    "certificate": Kind("c.json", _tile_certificate(), "nkigym.cli", ("check", "c.json")),
    "certificate of a step": Kind(
        "step.json", _step_certificate(), "nkigym.cli", ("check", "step.json")
    ),
    "sweep": Kind("s.toml", SWEEP, "nkigym.cli", ("sweep", "s.toml")),
    "store": Kind("s.db", "SQLite format 3\0", "nkigym.cli", ("show", "s.db")),
}  # fmt: skip
"""The commands run in this process; none of them executes the file."""

ODD = (
    b"1", b"", b"null", b"[" * 50_000, b"9" * 10_000, b"NaN", b'"\xff"', b"\0", b"\xef\xbb\xbf",
    b"{}", b"-1e400", b"tool = 1", b"'", b'"""', b"\r", b"\xed\xa0\x80", b"(" * 300, b"true",
    b"a = 1979-05-27", b"[[case]]", b"x" * 70_000, b"0x", b"\\u0000", b"1e5", b"# coding: none\n",
)  # fmt: skip


def malformed(text: str, rng: random.Random) -> bytes:
    """The text with some bytes exchanged, removed or doubled, or something odd in their place."""
    raw = bytearray(text.encode())
    for _ in range(rng.randint(1, 3)):
        start = rng.randrange(len(raw) + 1)
        stop = min(len(raw), start + rng.choice((0, 1, 4, 30, 200)))
        raw[start:stop] = rng.choice(
            (rng.choice(ODD), rng.randbytes(rng.randint(1, 4)), bytes(raw[start:stop]) * 2, b"")
        )
    return bytes(raw)


def odd_values(document: Any, rng: random.Random) -> bytes:
    """The JSON document with another value at one of its places."""
    places = [*_places(document)]
    holder, key = rng.choice(places)
    kept = holder[key]
    holder[key] = rng.choice((None, 1, -1, 10**400, "", "x", [], {}, [[]], True, 1.5, {"a": None}))
    text = json.dumps(document)
    holder[key] = kept
    return text.encode()


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    keys = node.keys() if isinstance(node, dict) else range(len(node))
    for key in keys:
        yield node, key
        if isinstance(node[key], dict | list):
            yield from _places(node[key])


def whole_file(kind: Kind, rng: random.Random) -> bytes:
    """What the file contains: a changed text or odd values of a document."""
    if rng.random() < 0.5 and kind.file.endswith(("json", "ipynb")):
        return odd_values(json.loads(kind.text), rng)
    return malformed(kind.text, rng)


def result_of(main: Callable[[list[str]], int], words: list[str]) -> tuple[int, str]:
    """The exit code and what the command wrote on stderr."""
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()) as out:
        out.buffer = io.BytesIO()  # type: ignore[attr-defined]
        try:
            code = main(words)
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
    return code, errors.getvalue()


def survives(kind: Kind, count: int) -> None:
    for number in range(count):
        answers(kind, whole_file(kind, random.Random(f"{SEED} {kind.file} {number}")))


def answers(kind: Kind, raw: bytes) -> None:
    """Run the command with this content of its file."""
    main = __import__(kind.main, fromlist=["main"]).main
    Path("k.py").write_text(KERNEL)
    Path(kind.file).write_bytes(raw)
    try:
        code, errors = result_of(main, [*kind.words])
    except Exception as error:
        raise AssertionError(f"{type(error).__name__} escapes for {raw[:500]!r}") from error
    assert code in (0, 1, 2), raw[:500]
    assert "Traceback" not in errors, f"{raw[:500]!r}\n{errors}"
    assert Path(kind.file).read_bytes() == raw


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_malformed_files_end_in_a_message(kind: Kind):
    survives(kind, QUICK)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_odd_files_end_in_a_message(kind: Kind):
    for raw in (*ODD, b"[tool]\nnki-migrate = 1", b"tool = []", b"[[tool.nki-migrate]]"):
        answers(kind, raw)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_many_malformed_files_end_in_a_message(kind: Kind):
    survives(kind, THOROUGH)


OURS = re.compile(r'File ".*(nki_|nkigen|nkigym|neuroncore|tokenplan)')
BIN = Path(sys.executable).parent
PROGRAMS = {
    "nki_migrate.cli": "nki-migrate", "tokenplan.cli": "tokenplan", "nkigym.cli": "nkigym",
    "nki_runtime": "nki-run", "nkigen_lite": "nkigen",
}  # fmt: skip
RUN = {
    "nki-run": Kind("k.py", KERNEL, "nki_runtime", ("k.py",)),
    "nki-run of a kernel": Kind("k.py", KERNEL, "nki_runtime", ("k.py:copy", "f32[4,4]")),
    "nkigen": Kind("k.py", KERNEL, "nkigen_lite", ("k.py:copy", "--spec", "f32[4,4]")),
    "nkigym tune": Kind(
        "k.py", KERNEL, "nkigym.cli", ("tune", "k.py:copy", "--spec", "f32[4,4]", "--budget", "2")
    ),
}
"""Commands that execute the file."""


@pytest.mark.thorough
@pytest.mark.parametrize("kind", (KINDS | RUN).values(), ids=KINDS | RUN)
def test_commands_answer_malformed_files_with_a_message(kind: Kind, folder: Path):
    for number in range(COMMANDS):
        raw = whole_file(kind, random.Random(f"{SEED + 1} {kind.file} {number}"))
        Path("k.py").write_text(KERNEL)
        Path(kind.file).write_bytes(raw)
        words = [BIN / PROGRAMS[kind.main], *kind.words]

        done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)

        assert done.returncode in (0, 1, 2), (raw[:500], done.stderr)
        assert not OURS.search(done.stderr), (raw[:500], done.stderr)
        assert Path(kind.file).read_bytes() == raw
        assert not [*folder.glob(".*.tmp")]
