"""`nki-run --trace`: the file is read back with Perfetto's own messages."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

from neuroncore import timeline
from neuroncore.commands.files import write_whole
from neuroncore.machine.observe import watched_by
from nki_runtime import estimate, program_of, use
from nki_runtime.trace import LaunchRecorder
from nki_runtime.trace.perfetto import slices, write_trace
from nki_runtime.trace.svg import write_svg

FOLDER = Path(__file__).parent

SCRIPT = """\
import runpy
import numpy as np
kernels = runpy.run_path({kernels!r})
print(kernels["rows_doubled"](np.ones((300, 64), np.float32)).sum())
kernels["product"](np.ones((128, 128), np.float32), np.ones((128, 512), np.float32))
"""

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def nki_run(
    folder: Path, text: str, *options: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `text` as program.py in `folder` under nki-run with these options."""
    (folder / "program.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "nki_runtime", "--backend", "beta2", "--nki", "0.6"]
    return subprocess.run(
        [*command, *options, "program.py"],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
        env={"PATH": "", **environment},
    )  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return partial(nki_run, tmp_path)


def script(extra: str = "") -> str:
    return SCRIPT.format(kernels=str(FOLDER / "time_kernels.py")) + extra


class Read:
    """A trace file: slices and counter values by track name, flows."""

    def __init__(self, file: Path) -> None:
        self.file = file
        trace = Trace()
        trace.ParseFromString(file.read_bytes())
        self.names: dict[int, str] = {}
        self.units: dict[str, str] = {}
        self.slices: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.counters: dict[str, list[tuple[int, float]]] = defaultdict(list)
        open_slices: dict[int, dict[str, Any]] = {}
        for packet in trace.packet:
            if packet.HasField("track_descriptor"):
                found = packet.track_descriptor
                self.names[found.uuid] = found.name
                if found.HasField("counter"):
                    self.units[found.name] = found.counter.unit_name
                continue
            event, time = packet.track_event, packet.timestamp
            name = self.names[event.track_uuid]
            if event.type == TrackEvent.TYPE_COUNTER:
                self.counters[name].append((time, event.double_counter_value))
            elif event.type == TrackEvent.TYPE_SLICE_BEGIN:
                assert event.track_uuid not in open_slices, f"slices overlap on {name}"
                open_slices[event.track_uuid] = {
                    "name": event.name, "start": time, "track": name,
                    "flows": list(event.flow_ids), "ends": list(event.terminating_flow_ids),
                    "arguments": {a.name: a for a in event.debug_annotations},
                }  # fmt: skip
            else:
                done = open_slices.pop(event.track_uuid)
                done["end"] = time
                self.slices[name].append(done)
        assert not open_slices

    def every(self) -> list[dict[str, Any]]:
        return [one for found in self.slices.values() for one in found]


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    folder = tmp_path_factory.mktemp("traced")
    done = nki_run(folder, script(), "--trace", "out.pftrace")
    assert (done.stdout, done.returncode) == ("38400.0\n", 0)
    assert "--trace wrote out.pftrace (2 kernels, " in done.stderr
    return Read(folder / "out.pftrace")


def kernel(name: str) -> Any:
    with use("beta2", nki="0.6"):
        return runpy.run_path(str(FOLDER / "time_kernels.py"))[name]


def test_there_is_a_track_for_every_engine_and_queue_that_works(traced):
    assert {"kernels", "vector", "tensor"} <= set(traced.slices)
    assert sum(name.startswith("DMA queue ") for name in traced.slices) >= 2
    assert not {"scalar", "gpsimd", "sync"} & set(traced.slices)


def trace_processor() -> str | None:
    """The program that Perfetto loads on first use; the wheel does not have it."""
    kept = Path.home() / ".local" / "share" / "perfetto" / "prebuilts"
    found = shutil.which("trace_processor_shell") or shutil.which("trace_processor")
    every = (str(path) for path in kept.glob("*trace_processor*") if path.suffix != ".tmp")
    return found or next(every, None)


def test_the_trace_processor_of_perfetto_reads_every_slice(traced):
    program = trace_processor()
    if program is None:
        pytest.skip("no trace_processor is installed: the trace is read by its protobuf alone")
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

    with TraceProcessor(
        str(traced.file), config=TraceProcessorConfig(bin_path=program)
    ) as processor:
        rows: Any = processor.query("select name, ts, dur from slice")
        found = sorted((row.name, row.ts, row.ts + row.dur) for row in rows)

    assert found == sorted((one["name"], one["start"], one["end"]) for one in traced.every())


def test_kernels_follow_one_another_with_their_estimated_times(traced):
    first = estimate(kernel("rows_doubled"), ((300, 64), "float32"))
    specs = ((128, 128), "float32"), ((128, 512), "float32")
    second = estimate(kernel("product"), *specs)

    one, two = traced.slices["kernels"]

    assert (one["name"], two["name"]) == ("rows_doubled", "product")
    assert (one["start"], one["end"]) == (0, round(first.total_ns))
    assert two["start"] == round(first.launch_ns)
    assert two["end"] == round(first.launch_ns + second.total_ns)


def test_every_micro_op_is_a_slice_where_its_bar_is(traced):
    bars = estimate(kernel("rows_doubled"), ((300, 64), "float32")).bars
    end = traced.slices["kernels"][0]["end"]

    drawn = [s for s in traced.every() if s["start"] <= end and s["track"] != "kernels"]

    assert sorted((s["name"], s["start"], s["end"]) for s in drawn) == sorted(
        (b.instruction, round(b.start_ns), round(b.start_ns + b.busy_ns)) for b in bars
    )


def test_a_named_instruction_has_its_name(traced):
    names = [s["name"] for found in traced.slices.values() for s in found]

    assert names.count("weights") == 1


def test_a_slice_knows_its_source_line_operands_and_attributes(traced):
    slices = traced.slices["vector"]
    arguments = slices[0]["arguments"]

    source = (FOLDER / "time_kernels.py").read_text().splitlines()
    line = next(n for n, text in enumerate(source, 1) if "tensor_scalar" in text)
    assert f"time_kernels.py:{line}:" in arguments["source"].string_value
    assert arguments["op0"].string_value == "multiply"
    assert arguments["operand0"].double_value == 2.0
    assert arguments["dst"].string_value == "tile [128, 64]"


def test_flows_lead_from_what_was_waited_for(traced):
    source = {flow: one for one in traced.every() for flow in one["flows"]}
    target = {flow: one for one in traced.every() for flow in one["ends"]}

    assert source.keys() == target.keys()
    copy = next(s for s in traced.slices["vector"] if s["name"] == "tensor_copy")
    assert source[copy["ends"][0]]["name"] == "nc_matmul"
    assert all(source[flow]["start"] <= target[flow]["start"] for flow in source)


def test_counters_show_memory_and_bandwidth(traced):
    assert traced.units == {
        "SBUF held": "bytes per partition",
        "PSUM held": "banks",
        "HBM bandwidth": "GB/s",
    }
    assert max(value for _, value in traced.counters["PSUM held"]) == 1
    second = traced.slices["kernels"][1]["start"]
    held = [value for time, value in traced.counters["SBUF held"] if time >= second]
    assert max(held) == (128 + 512) * 4  # the result comes when the operands have gone
    assert all(counter[-1][1] == 0 for counter in traced.counters.values())


def test_the_bytes_under_the_bandwidth_are_those_moved(traced):
    moments = traced.counters["HBM bandwidth"]

    moved = sum(rate * (after - time) for (time, rate), (after, _) in pairwise(moments))

    expected = 2 * 300 * 64 * 4 + (128 * 128 + 2 * 128 * 512) * 4
    assert abs(moved - expected) < 0.02 * expected  # times are whole nanoseconds


# -- with others, and without ---------------------------------------------------------------------


def test_it_combines_with_records_and_checks(run, tmp_path):
    options = ("--trace", "t.pftrace", "--record", "facts.json", "--check", "capacity")
    done = run(script(), *options)

    assert (done.stdout, done.returncode) == ("38400.0\n", 0), done.stderr
    assert Read(tmp_path / "t.pftrace").slices["kernels"]
    assert json.loads((tmp_path / "facts.json").read_text())["schema"] == "nki-facts/1"


def test_a_kernel_that_no_program_says_is_named_and_the_others_are_written(run, tmp_path):
    done = run(script('kernels["zeros_in_hbm"](np.ones((4, 8), np.float32))\n'), "--trace", "t.pf")

    assert done.returncode == 1
    assert "nki-run: a kernel is not in the trace:" in done.stderr
    assert "data is moved without an instruction" in done.stderr
    assert [s["name"] for s in Read(tmp_path / "t.pf").slices["kernels"]] == [
        "rows_doubled",
        "product",
    ]


def test_a_kernel_that_failed_does_not_spoil_the_next(run, tmp_path):
    text = script(
        "try:\n"
        '    kernels["product"](np.ones((128, 64), np.float32), np.ones((128, 512), np.float32))\n'
        "except Exception as wrong:\n"
        "    print(type(wrong).__name__)\n"
        'kernels["in_place"](np.ones((4, 8), np.float32), (np.ones((4, 8), np.float32),))\n'
    )
    done = run(text, "--trace", "t.pftrace")

    assert (done.stdout, done.returncode) == ("38400.0\nShapeError\n", 0), done.stderr
    names = [s["name"] for s in Read(tmp_path / "t.pftrace").slices["kernels"]]
    assert names == ["rows_doubled", "product", "in_place"]


REGISTERS = """
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def rows(x):
    out = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.shared_hbm)
    row = nl.ndarray((1, 8), dtype=nl.float32, buffer=nl.sbuf)

    def body(at):
        nisa.dma_copy(row, x.ap([[8, 1], [1, 8]], scalar_offset=at))
        nisa.dma_copy(out.ap([[8, 1], [1, 8]], scalar_offset=at), row)

    nl.fori_loop(0, 4, body)
    return out


print(rows(np.ones((4, 8), np.float32)).sum())
"""


def test_registers_that_hold_known_numbers_are_in_the_trace(run, tmp_path):
    done = run(REGISTERS, "--trace", "t.pftrace")

    assert (done.stdout, done.returncode) == ("32.0\n", 0), done.stderr
    assert [s["name"] for s in Read(tmp_path / "t.pftrace").slices["kernels"]] == ["rows"]


def test_without_a_kernel_nothing_is_written(run, tmp_path):
    done = run("print(1)\n", "--trace", "t.pftrace")

    assert (done.stdout, done.returncode) == ("1\n", 1)
    assert "no kernel to trace: t.pftrace is not written" in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["program.py"]


def test_an_error_of_the_program_keeps_the_kernels_before_it(run, tmp_path):
    done = run(script('raise SystemExit("stop")\n'), "--trace", "t.pftrace")

    assert (done.stderr.splitlines()[-1], done.returncode) == ("stop", 1)
    assert len(Read(tmp_path / "t.pftrace").slices["kernels"]) == 2


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("absent/t.pftrace", "no such folder absent"),
        (".", "this is a folder"),
        ("program.py/t.pftrace", "no such folder program.py"),
    ],
    ids=["no-folder", "a-folder", "under-a-file"],
)
def test_a_file_that_cannot_be_written_is_rejected_before_the_run(run, file, says):
    done = run(script(), "--trace", file)

    assert (done.stdout, done.returncode) == ("", 2)
    assert f"nki-run: --trace {file}: {says}" in done.stderr


def test_without_the_extra_it_says_what_to_install(run, tmp_path):
    (tmp_path / "hidden" / "perfetto").mkdir(parents=True)
    (tmp_path / "hidden" / "perfetto" / "__init__.py").write_text("raise ImportError('hidden')")

    done = run(script(), "--trace", "t.pftrace", PYTHONPATH=str(tmp_path / "hidden"))

    assert (done.stdout, done.returncode) == ("", 2)
    assert "--trace needs the trace extra" in done.stderr
    assert "pip install 'nki-runtime[trace]'" in done.stderr


def test_a_file_that_fails_half_way_leaves_the_old_one(tmp_path):
    file = tmp_path / "t.pftrace"
    file.write_bytes(b"old")

    def half(temporary: Path) -> None:
        temporary.write_bytes(b"ne")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_whole(file, half)

    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_pipe_stays_one_and_gets_the_trace(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    write_whole(pipe, lambda aside: aside.write_bytes(b"all of it"))

    assert os.read(reader, 100) == b"all of it"
    assert pipe.is_fifo()


def test_periods_that_are_not_drawn_are_marked(tmp_path):
    specs = (((128 * 200, 64), "float32"),)
    timeline = estimate(kernel("rows_doubled"), *specs, mode="as_written")
    assert timeline.repeats

    write_trace([timeline], tmp_path / "t.pftrace")

    marks = Read(tmp_path / "t.pftrace").slices["carried forward"]
    assert all("not drawn" in mark["name"] for mark in marks)
    assert sum(m["end"] - m["start"] for m in marks) > timeline.total_ns / 2


def test_a_name_that_ends_in_svg_is_a_picture_with_a_row_per_engine_and_queue(run, tmp_path):
    done = run(script(), "--trace", "out.svg")

    drawn = ElementTree.parse(tmp_path / "out.svg").getroot()
    texts = [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    bars = [rect.attrib for rect in drawn.iter("{http://www.w3.org/2000/svg}rect")]
    titles = [title.text for title in drawn.iter("{http://www.w3.org/2000/svg}title")]
    assert {"vector", "tensor"} <= set(texts)
    assert "rows_doubled on trn2" in texts and "product on trn2" in texts
    assert any(
        re.fullmatch(r"nc_matmul: \d+ to \d+ ns, time_kernels.py:\d+:\d+", t or "") for t in titles
    )
    for bar in bars:
        assert 150 <= float(bar["x"]) <= float(bar["x"]) + float(bar["width"]) <= 949
    assert re.fullmatch(
        r"nki-run: --trace wrote out.svg \(2 kernels, [\d.]+ µs modelled; opens in a browser\)\n",
        done.stderr,
    )


def test_many_bars_that_are_too_short_to_see_are_drawn_as_one(tmp_path):
    with use(nki="0.6"):
        kernel = runpy.run_path(str(FOLDER / "time_kernels.py"))["rows_doubled"]
        programs = [program_of(kernel, ((rows, 64), "float32")) for rows in (1024, 128 * 1500)]
        few, many = (
            timeline.estimate(p, verified=True, skip_periods=False, mode="as_written")
            for p in programs
        )

    write_svg([few], tmp_path / "few.svg")
    write_svg([many], tmp_path / "many.svg")

    assert (tmp_path / "few.svg").read_text().count("<rect") == len(few.bars)
    assert (tmp_path / "many.svg").read_text().count("<rect") < len(many.bars)


@pytest.mark.parametrize("option", ["--trace", "--record"])
def test_a_full_disk_is_a_message_and_exit_code_2(run, option):
    done = run(script(), option, "/dev/full")

    message = f"nki-run: {option} /dev/full: No space left on device\n"
    assert (done.returncode, done.stderr) == (2, message)


def test_each_core_of_a_launch_is_in_the_trace(tmp_path):
    recorder, arrays = LaunchRecorder(), [np.ones((300, 64), np.float32)]
    with use(nki="0.6"), watched_by(recorder):
        kernel = runpy.run_path(str(FOLDER / "time_kernels.py"))["rows_doubled"]
        kernel[2](*arrays)
        found, whole = recorder.timelines(), estimate(kernel[2], *arrays)

    assert [timeline.total_ns for timeline in found] == [whole.total_ns] * 2
    write_trace([*found, *found], tmp_path / "cores.pftrace")
    drawn = [s for s in slices(tmp_path / "cores.pftrace") if s.track == "kernels"]
    second = round(whole.launch_ns)
    assert [(s.start, s.end) for s in drawn] == [
        (start, round(start + whole.total_ns)) for start in (0, 0, second, second)
    ]
