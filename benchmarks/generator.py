"""The generator's workloads: what each kernel executes, moves and takes, against its bounds.

    python benchmarks/generator.py [NAME …] [--write docs/generator.md]
    python benchmarks/generator.py --memory

Counts are of the program that is emitted; "at most" are the bounds we hold ourselves to, "least"
what the inputs, outputs and tile limits of the machine allow (tiles of 8 KiB per partition).
With NKIPY_CHECKOUT set to a checkout of aws-neuron/nkipy that has nkigen-lite, the same functions
go through the public package in the same run, and its counts stand beside ours.
A result that is only a view of an argument is one DMA from HBM to HBM, or goes through SBUF in
long runs and is reordered there, whichever is predicted faster: the single DMA takes 58.6 us for
"reverse axes" and 775.4 us for "weight transpose"; by way of SBUF "strided slice" takes 4.0 us.
Microseconds are the timeline's, mode compiled, without the launch. "Trace to source" is CPU time,
the least of 5 times, of which 0.3 s are asked for: a row holds where instructions, MiB and it do.
A loop of plain Python is timed in the same run: it takes twice as long on a busy machine too.
--write adds the time that the busiest resource needs, and where the predicted time is more than
1.15 times that, the critical path by resource.
Of four workloads the kernels of benchmarks/hand_written are timed beside the generator's.
--memory compiles attention of 16 heads x 2048 x 128 and runs it here: what the process holds at
most (2 GiB are asked for), and how far the result is from float64.
"""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from generator_workloads import HAND_WRITTEN, WORKLOADS, Workload, attention, softmax

import nki_runtime
import nkigen_lite
from neuroncore.errors import KernelError
from neuroncore.timeline import Timeline, estimate

MIB = 2**20
BOUNDED = ("instructions", "HBM MiB", "trace to source")
MOST_CPU_S, TIMES = 0.3, 5
REFERENCE = 300_000
MOST_GIB = 2
MOST_TIMES_HAND_WRITTEN = 2
LARGE = (16, 2048, 128)


MARK, END = (
    "<!-- table: python benchmarks/generator.py --write docs/generator.md -->",
    "<!-- end -->",
)

HEAD = (
    "| workload | instructions | at most | least | DMAs | HBM MiB | at most | least | µs | SBUF B "
    "| PSUM banks | trace to source, CPU s | | hand-written µs, ratio; times its roofline |"
)

COLUMNS = (
    "workload", "instructions", "at most", "least", "public", "HBM MiB", "at most", "least",
    "public", "predicted µs", "hand-written µs", "bound µs", "times", "critical path, µs",
)  # fmt: skip
"""Of the documentation's table."""
MOST_TIMES_BOUND = 1.15
"""Above it, the table says where the time goes."""


def compiled(workload: Workload) -> nkigen_lite.Compiled:
    """The workload's kernel."""
    return nkigen_lite.compile(workload.function, *workload.specs, in_place=workload.in_place)


def row(workload: Workload) -> str:
    """One line of the table, or why there is none."""
    try:
        kernel = compiled(workload)
    except KernelError as error:
        return f"| {workload.name} | not lowered: {str(error).splitlines()[0]} |"
    took = min(cpu_s(workload) for _ in range(TIMES))
    stats = kernel.stats
    mib = stats.hbm_bytes / MIB
    measured = (stats.instructions, mib, took)
    bounds, counts = (*workload.at_most, MOST_CPU_S), (workload.at_most[0], workload.least[0])
    above = [what for what, m, most in zip(BOUNDED, measured, bounds, strict=True) if m > most]
    cells = (
        workload.name, stats.instructions, *map(bound, counts), stats.dmas,
        f"{mib:.3f}", bound(workload.at_most[1]), workload.least[1], f"{stats.predicted_us:.1f}",
        stats.peak_sbuf_bytes_per_partition, stats.psum_banks, f"{took:.3f}",
        f"ABOVE: {', '.join(above)}" if above else "holds",
        beside_hand_written(workload, stats.predicted_us),
    )  # fmt: skip
    return "| " + " | ".join(map(str, cells)) + " |"


def cpu_s(workload: Workload) -> float:
    """CPU time from the function to the source."""
    began = time.process_time()
    assert compiled(workload).source
    return time.process_time() - began


def reference_s() -> float:
    """CPU time of a fixed loop of plain Python: how fast the machine is today."""
    began, table = time.process_time(), dict[int, int]()
    for number in range(REFERENCE):
        table[number % 1024] = number
    return time.process_time() - began


def beside_hand_written(workload: Workload, ours: float) -> str:
    """The predicted time of the hand-written kernel, ours over it, and it over its roofline."""
    if workload.name not in HAND_WRITTEN:
        return "–"
    timeline = hand_written(workload)
    us, roofline = timeline.total_ns / 1e3, timeline.busiest_ns / 1e3
    word = "" if ours <= MOST_TIMES_HAND_WRITTEN * us else " ABOVE"
    return f"{us:.1f}, {ours / us:.2f}{word}; {us / roofline:.2f}"


def hand_written(workload: Workload) -> Timeline:
    """The timeline of the hand-written kernel."""
    name, more = HAND_WRITTEN[workload.name]
    specs = map(nkigen_lite.as_spec, workload.specs)
    arrays = [np.zeros(spec.shape, spec.storage) for spec in specs]
    with nki_runtime.use("beta2", nki="0.7", target="trn2"):
        from hand_written import kernels  # needs a backend

        return nki_runtime.estimate(getattr(kernels, name), *arrays, *more)


def bound(count: float) -> str:
    """A number that a row is held to, if it is."""
    return "–" if math.isinf(count) else f"{count:,}"


def public(names: list[str]) -> dict[str, str]:
    """What the public package makes of the workloads, in words; empty without a checkout."""
    if not os.environ.get("NKIPY_CHECKOUT"):
        return {}
    script = Path(__file__).with_name("generator_peer.py")
    done = subprocess.run([sys.executable, str(script), *names], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr.strip().splitlines()[-1])
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return {a["name"]: a.get("failed") or f"{a['instructions']}, {a['mib']:.2f}" for a in answers}


def page(peer: dict[str, str]) -> str:
    """The table of the documentation: no times, the public package's figures where known."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|---|" + "---:|" * (len(COLUMNS) - 1)]
    for workload in WORKLOADS:
        kernel = compiled(workload)
        stats = kernel.stats
        theirs = peer.get(workload.name, "–, –").split(", ")
        cells = (
            workload.name, f"{stats.instructions:,}", bound(workload.at_most[0]),
            bound(workload.least[0]), f"{theirs[0]}", f"{stats.hbm_bytes / MIB:.3f}",
            bound(workload.at_most[1]), workload.least[1], theirs[1], f"{stats.predicted_us:,.1f}",
            beside_hand_written(workload, stats.predicted_us).split(",")[0], *roofline(kernel),
        )  # fmt: skip
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def roofline(kernel: nkigen_lite.Compiled) -> tuple[str, str, str]:
    """The time that the busiest resource is busy, the predicted time over it, and where that is
    too much the critical path: the time that it spends with each resource."""
    timeline = estimate(kernel.program, verified=True)
    least = timeline.busiest_ns
    times, path = timeline.total_ns / least, defaultdict[str, float](float)
    for step in timeline.critical_path():
        path[step.bar.lane] += step.path_ns / 1e3
    order = sorted(path.items(), key=lambda item: -item[1])
    spent = ", ".join(f"{lane} {us:.1f}" for lane, us in order)
    above = times > MOST_TIMES_BOUND
    return f"{least / 1e3:,.1f} {timeline.bottleneck}", f"{times:.2f}", spent if above else "–"


def known(file: Path) -> dict[str, str]:
    """The public package's figures in the page's table."""
    rows = (line.split(" | ") for line in file.read_text(encoding="utf-8").splitlines())
    return {r[0].removeprefix("| "): f"{r[4]}, {r[8]}" for r in rows if len(r) == len(COLUMNS)}


def write(file: Path, table: str) -> None:
    """The table between the page's two marks."""
    text = file.read_text(encoding="utf-8")
    head, mark, rest = text.partition(MARK)
    _, end, tail = rest.partition(END)
    if not mark or not end:
        sys.exit(f"{file} has no lines {MARK} and {END}")
    file.write_text(f"{head}{mark}\n{table}\n{end}{tail}", encoding="utf-8")


def memory() -> str:
    """What compiling and running the large attention holds at most, in words."""
    q, k, v = np.random.default_rng(0).standard_normal((3, 1, *LARGE), dtype=np.float32)
    kernel = nkigen_lite.compile(attention, q, k, v)
    began = time.process_time()
    result = kernel(q, k, v)[0]
    took = time.process_time() - began
    unit = 1 if sys.platform == "darwin" else 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30
    away = max(
        np.abs(_head(*qkv) - r).max() for *qkv, r in zip(q[0], k[0], v[0], result, strict=True)
    )
    word = "holds" if peak <= MOST_GIB else "ABOVE"
    return (
        f"attention {' x '.join(map(str, LARGE))}: {kernel.stats.instructions:,} instructions, run "
        f"in {took:.0f} CPU s, {peak:.2f} of {MOST_GIB} GiB ({word}), {away:.1e} from float64"
    )


def _head(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    scores = q.astype(np.float64) @ k.T.astype(np.float64) / math.sqrt(q.shape[-1])
    return softmax(scores) @ v


def main(arguments: list[str]) -> None:
    if "--memory" in arguments:
        print(memory())
        return
    if "--write" in arguments:
        file = Path(arguments[arguments.index("--write") + 1])
        write(file, page(public([]) or known(file)))
        return
    names = arguments
    peer = public(names)
    assert compiled(WORKLOADS[0]).source  # imports happen here
    head, columns = (HEAD + " public: instructions, MiB |", 15) if peer else (HEAD, 14)
    print(head, "|---" * columns + "|", sep="\n")
    for workload in WORKLOADS:
        if not names or workload.name in names:
            beside = f" {peer[workload.name]} |" if peer else ""
            print(row(workload) + beside, flush=True)
    least = min(reference_s() for _ in range(TIMES))
    print(f"\nThe reference, {REFERENCE:,} assignments to a dict: {least:.4f} CPU s")


if __name__ == "__main__":
    main(sys.argv[1:])
