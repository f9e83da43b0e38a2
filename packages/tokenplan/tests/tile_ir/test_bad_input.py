"""What can be wrong around a kernel: another compiler, odd indices, strides, processes, disks."""

import os
import subprocess
import sys
import time
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest
from packages.tokenplan.tests.tile_ir import kernels
from packages.tokenplan.tests.tile_ir.test_sweep import make

from neuroncore.layout import Layout
from tokenplan.cli.main import main
from tokenplan.report import explained
from tokenplan.tile_ir import (
    DescriptionError,
    Order,
    TileKernel,
    bytecode,
    compiler,
    emit,
    explain_bytecode,
    orders_of,
)
from tokenplan.tile_ir.candidates import candidate
from tokenplan.tile_ir.results import Result, Store, SweepError
from tokenplan.tile_ir.sweep import sweep


def codes(found):
    return [diagnostic.code for diagnostic in found.graph.diagnostics]


def test_overlapping_strides_keep_the_order_of_tiles_that_share_bytes():
    kernel = TileKernel("windows")
    a = kernel.array("a", Layout.of((4, 64), (32, 1)))
    kernel.store(a, (0, 0), kernel.full((1, 64), 1.0))
    kernel.load(a, (1, 0), (1, 64))
    kernel.load(a, (2, 0), (1, 64), name="far")

    assert orders_of(kernel.described()).kept == (Order("store", "load"),)


def test_an_index_that_may_wrap_is_listed_as_an_assumption():
    kernel = TileKernel("long")
    a = kernel.array("a", (2**27, 64))
    with kernel.loop("k", 2**20) as k:
        kernel.store(a, (2 * k + 1, 0), kernel.load(a, (2 * k, 0), (64, 64)))
    found = orders_of(kernel.described())

    assert found.kept == () and "W3" in codes(found)
    assert any("2^31" in text for text in found.graph.assumptions)
    assert "W3" not in codes(orders_of(kernels.even_odd().described()))


def test_another_compiler_or_one_without_a_version_is_named(tmp_path, monkeypatch):
    script = tmp_path / "tileiras"
    monkeypatch.setattr(compiler, "tool", lambda name: script)
    keys = []
    for line in ("echo V13.4.92", "echo V13.5.37", "echo unknown"):
        script.write_text(f"#!/bin/sh\n{line}\n")
        script.chmod(0o755)
        compiler.version.cache_clear()
        if line.endswith("unknown"):
            with pytest.raises(compiler.CompilerError, match="does not report its version"):
                compiler.version()
        else:
            keys.append(candidate(make, {}, "sm_90").key)
    compiler.version.cache_clear()

    assert len(set(keys)) == 2


def test_a_compiler_that_makes_no_binary_is_named_also_in_tables(tmp_path, monkeypatch):
    script = tmp_path / "tileiras"
    monkeypatch.setattr(compiler, "tool", lambda name: script)
    counted = run_path(str(Path(__file__).parents[4] / "benchmarks/tile_ir.py"))["counted"]
    for line, message in (("exit 0", "made no binary"), ("exit 1", "rejected the bytecode"),
                          ("kill -SEGV $$", "crashed with signal 11")):  # fmt: skip
        script.write_text(f"#!/bin/sh\n{line}\n")
        script.chmod(0o755)
        with pytest.raises(compiler.CompilerError, match=f"tileiras {message} for sm_90"):
            compiler.compile_bytecode(b"", "sm_90")
        assert counted(b"", "sm_90") == f"tileiras {message} for sm_90"


def test_a_full_disk_ends_the_sweep_with_a_cure(tileiras, tmp_path):
    store = Store(tmp_path / "s.sqlite")
    (pages,) = store.database.execute("PRAGMA page_count").fetchone()
    store.database.execute(f"PRAGMA max_page_count = {pages}")

    with pytest.raises(SweepError, match="full") as found:
        store.add(Result("key", 1.0), b"\0" * 100_000)
    assert "make room on its disk" in str(found.value)
    with pytest.raises(SweepError, match="full"):
        sweep(make, {"rows": (64,)}, store)


def test_two_processes_write_the_same_bytes():
    code = (
        "from packages.tokenplan.tests.tile_ir import examples, kernels\n"
        "import hashlib\n"
        "made = [kernels.recurrence(), *(e.make() for e in examples.EXAMPLES.values())]\n"
        "print([hashlib.sha256(kernels.bytes_of(k)).hexdigest() for k in made])\n"
    )
    root = Path(__file__).parents[4]
    found = {
        subprocess.run(
            [sys.executable, "-c", code], cwd=root, check=True, capture_output=True,
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip

    assert len(found) == 1 and len(next(iter(found))) > 64


def test_names_comments_and_lines_of_every_example_hit_the_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(compiler, "version", lambda: "13.5.37")
    source = (Path(__file__).parents[4] / "examples/tile_ir/kernels.py").read_text("utf-8")
    keys = []
    for n, text in enumerate(
        (
            source,
            '"""Another page."""\n\n# a comment\n'
            + source.replace('TileKernel("', 'TileKernel("other_').replace(
                'name="load_', 'name="read_'
            ),
        )
    ):
        file = tmp_path / f"kernels{n}.py"
        file.write_text(text.replace("from __future__ import annotations\n", ""), "utf-8")
        found: dict[str, Any] = {"__name__": f"kernels{n}"}
        sys.modules[f"kernels{n}"] = sys.modules[__name__]
        exec(compile(file.read_text("utf-8"), str(file), "exec"), found)
        keys.append([candidate(e.make, {}, "sm_90").key for e in found["EXAMPLES"].values()])

    assert keys[0] == keys[1] and len(set(keys[0])) == 5


def test_a_pointer_tile_whose_offsets_would_wrap_is_rejected():
    kernel = TileKernel("far")
    a = kernel.array("a", (4, 2**31), "i8", strides=(-(2**31), 1))
    kernel.store(a, (2, 0), kernel.load(a, (0, 0), (1, 64)))
    with pytest.raises(DescriptionError, match="offsets of a pointer tile have 32 bits"):
        kernels.bytes_of(kernel)


def test_a_grid_does_not_hide_an_index_that_may_wrap():
    kernel = TileKernel("long")
    kernel.grid("g", 8)
    a = kernel.array("a", (2**27, 64))
    with kernel.loop("k", 2**20) as k:
        kernel.store(a, (2 * k + 1, 0), kernel.load(a, (2 * k, 0), (64, 64)))

    assert "W3" in codes(orders_of(kernel.described()))


@pytest.mark.parametrize(
    "words", [["explain", "k.tileirbc", "--compile"], ["sweep", "k.py:make", "--target"]]
)
def test_an_unknown_architecture_is_a_usage_error(words, capsys):
    with pytest.raises(SystemExit, match="2"):
        main([*words, "sm_42"])
    assert "'sm_42' is none of sm_80" in capsys.readouterr().err


def test_a_description_has_no_orders_or_bytecode_for_an_unknown_architecture():
    found = orders_of(kernels.recurrence().described())
    with pytest.raises(DescriptionError, match="unknown architecture 'foo'"):
        orders_of(found.described, target="foo")
    with pytest.raises(DescriptionError, match="unknown architecture 'sm_foo'"):
        emit(found.described, found.kernel, found.kept, target="sm_foo")


def test_an_order_that_the_integer_set_library_cannot_decide_is_kept():
    """lexmin fails for these: "affine expression involves some of the domain dimensions"."""
    kernel = TileKernel("undecided")
    a = kernel.array("a", (16, 48))
    with kernel.loop("i", 2) as i, kernel.loop("j", 3) as j:
        with kernel.loop("k", 2) as k:
            kernel.store(a, (3 * k + j + 2, 3 * i + 3 * j + 2), kernel.full((2, 4), 1.0))
        with kernel.loop("m", 4):
            kernel.atomic(a, (3 * j + 1, j + 2), "addf", kernel.full((1, 4), 1.0))

    assert Order("store", "atomic") in orders_of(kernel.described()).kept


@pytest.mark.parametrize(
    ("hints", "twice"),
    [({"sm_90": {"latency": 2, "latencx": 3}}, "sm_90, latency"),
     ({"sm_90": {"latency": 2}, "sm_9x": {}}, "architecture sm_90")],
)  # fmt: skip
def test_a_hint_that_is_given_twice_is_rejected(hints, twice):
    body = bytecode.Block((), (bytecode.Operation("return", {"values": ()}, (), {}),))
    data = bytecode.write(bytecode.Module((bytecode.Function("k", body, hints),)))
    assert bytecode.read(data).functions[0].hints == hints
    repeated = data.replace(b"latencx", b"latency").replace(b"sm_9x", b"sm_90")

    with pytest.raises(bytecode.BytecodeError, match=f"{twice} is twice in the hints"):
        bytecode.read(repeated)


def is_running(process):
    try:
        state = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_a_compiler_has_started_ends_with_it_at_the_limit(tmp_path, monkeypatch):
    script, child = tmp_path / "tileiras", tmp_path / "child"
    script.write_text(f"#!/bin/sh\nsleep 10000 &\necho $! > {child}.new\n"
                      f"mv {child}.new {child}\nwait\n")  # fmt: skip
    script.chmod(0o755)
    monkeypatch.setattr(compiler, "tool", lambda name: script)
    for seconds in (1, 4, 16, 64):  # a busy machine may need more to start it
        with pytest.raises(compiler.CompilerError, match="took longer than"):
            compiler.compile_bytecode(b"", "sm_90", seconds=seconds)
        if child.is_file():
            break
    number = int(child.read_text("utf-8"))
    ends = time.monotonic() + 60
    while is_running(number) and time.monotonic() < ends:
        time.sleep(0.01)

    assert not is_running(number)


def test_assumed_pairs_of_many_arrays_are_one_line():
    kernel = TileKernel("many")
    for n in range(5):
        a = kernel.array(f"a{n}", (64, 64))
        kernel.store(a, (0, 0), kernel.full((64, 64), 1.0))
    found = orders_of(kernel.described())
    short, long = (explained(found.graph, verbose) for verbose in (False, True))
    (line,) = (line for line in short.splitlines() if line.startswith("W2: "))

    assert line == "W2: 10 pairs of parameters are distinct tensors: a0, a1, a2, a3, a4"
    assert long.count("\nW2: parameters ") == 10 and "pairs of parameters" not in long
    text, _ = explain_bytecode(bytecode.write(emit(found.described, found.kernel, found.kept)))
    assert text.count("W2: ") == 1 and "assumed: W2: 10 pairs of parameters" in text
