"""Tile IR kernels: orders, barriers, layouts, verdicts and sweeps, judged by the real compiler.

    python benchmarks/tile_ir.py [TABLE ...] [--cases 500]

Tables: orders, targets, exports, layouts, verdicts, sweep. Without a name, every table but
`verdicts` and `sweep`, which take minutes. Barriers, registers, shared memory and instructions are
counted in the binary; milliseconds are CPU time.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Iterator
from pathlib import Path
from runpy import run_path
from time import process_time

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from packages.tokenplan.tests.tile_ir import kernels
from packages.tokenplan.tests.tile_ir.access_cases import agreement, case

from neuroncore.timeline import estimate
from tokenplan import analyse
from tokenplan.checker import Execution
from tokenplan.executors import pool
from tokenplan.neuroncore import schedule
from tokenplan.tile_ir import (
    TileKernel,
    bytecode,
    compiler,
    emit,
    explain_bytecode,
    neuroncore_program,
    orders_of,
    total_orders,
)
from tokenplan.tile_ir.description import Described
from tokenplan.tile_ir.results import Store
from tokenplan.tile_ir.sweep import PRELOAD, sweep
from tokenplan.tile_ir.verdicts import verdicts

FOLDER = Path(__file__).parents[1] / "examples" / "tile_ir"
TARGETS = ("sm_90", "sm_100")
SEED = 27


def found_kernels() -> dict[str, Callable[[], TileKernel]]:
    """The streaming and litmus kernels of the tests, and the examples."""
    streaming = (kernels.even_odd, kernels.two_stores, kernels.disjoint_store, kernels.recurrence)
    litmus = {name: lambda name=name: kernels.litmus(name) for name in kernels.LITMUS}
    examples = run_path(str(FOLDER / "kernels.py"), run_name="tile_ir_kernels")
    made = {name: example.make for name, example in examples["EXAMPLES"].items()}
    made["gemm"] = lambda: examples["gemm"](1024, 1024, 1024, dtype="f16")
    made["attention"] = lambda: examples["attention_choice"](64, 64)
    return {make.__name__: make for make in streaming} | litmus | made


def counted(data: bytes, target: str) -> str:
    """Barriers, registers, shared memory and instructions of a binary; or why there is none."""
    try:
        found = compiler.statistics(compiler.compile_bytecode(data, target).cubin)
    except compiler.CompilerError as wrong:
        return wrong.what
    return f"{found.barriers} / {found.registers} / {found.shared_bytes} / {found.total}"


def milliseconds(action: Callable[..., object], *arguments: object) -> float:
    """CPU time, the least of three."""
    found = []
    for _ in range(3):
        began = process_time()
        action(*arguments)
        found.append((process_time() - began) * 1e3)
    return min(found)


def checked(described: Described, data: bytes) -> list[str]:
    """Orders that the first block of the bytecode loses, by the independent checker."""
    arrays = [np.empty(a.layout.size, f"V{a.itemsize}") for a in described.arrays]
    (function,) = bytecode.read(data).functions
    return list(Execution(arrays, footprints_only=True).run(function).lost())


def orders_table() -> Iterator[str]:
    """Each kernel under its orders and under the total order."""
    yield "| kernel | tokens | analysis, ms | checker, ms | " + " | ".join(TARGETS) + " |"
    yield "|---|---|---|---|" + "---|" * len(TARGETS)
    for name, make in found_kernels().items():
        described = make().described()
        found = orders_of(described)
        chain = total_orders(found.kernel, len(described.grid))
        both = [bytecode.write(emit(described, found.kernel, o)) for o in (found.kept, chain)]
        assert not checked(described, both[0]), name
        spent = [milliseconds(orders_of, described),
                 milliseconds(checked, described, both[0])]  # fmt: skip
        cells = [", ".join(counted(data, target) for data in both) for target in TARGETS]
        yield (f"| {name} | {len(found.kept)} of {len(chain)} | {spent[0]:.1f} | {spent[1]:.1f} | "
               f"{' | '.join(cells)} |")  # fmt: skip


def targets_table() -> Iterator[str]:
    """The examples as NeuronCore programs: orders, waits of the plan, and time."""
    examples = run_path(str(FOLDER / "kernels.py"), run_name="tile_ir_kernels")["EXAMPLES"]
    yield "| kernel | Tile IR tokens | NeuronCore kept edges | waits | microseconds |"
    yield "|---|---|---|---|---|"
    for name, example in examples.items():
        described = example.make().described()
        program = neuroncore_program(described)
        graph = analyse(program)
        waits = len(schedule(graph, program).as_json()["waits"])
        time = estimate(program, mode="as_written").total_ns / 1e3
        kept = len(graph.with_status("kept"))
        yield f"| {name} | {len(orders_of(described).kept)} | {kept} | {waits} | {time:.1f} |"


def exports_table() -> Iterator[str]:
    """cuTile's exports with their own tokens and with the needed ones."""
    from packages.tokenplan.tests.tile_ir import cutile

    yield "| export | " + " | ".join(TARGETS) + " |"
    yield "|---|" + "---|" * len(TARGETS)
    for name in cutile.KERNELS:
        data = cutile.exported(name)
        _, new = explain_bytecode(data)
        cells = [f"{counted(data, t)}, {counted(new, t)}" for t in TARGETS]
        yield f"| {name} | {' | '.join(cells)} |"


def layouts_table() -> Iterator[str]:
    """The layout kernels: which accesses are views, why others are not, and what that costs."""
    kernels = run_path(str(FOLDER / "layouts.py"), run_name="tile_ir_layouts")["LAYOUT_KERNELS"]
    yield "| kernel | layout | access | no TMA | " + " | ".join(TARGETS) + " |"
    yield "|---|---|---|---|" + "---|" * len(TARGETS)
    views, accesses = 0, 0
    for family, cases in kernels.items():
        for name, kernel in cases.cases(is_large=True, dtype="f16"):
            described = kernel.described()
            found, all_verdicts = orders_of(described), list(verdicts(described))
            views += sum(v.view.is_view for v in all_verdicts)
            accesses += len(all_verdicts)
            mine = next((v for v in all_verdicts if v.view.kind != "partition_view"
                         or v.obstacles or len(v.view.dims) > 2 or v.view.flips),
                        all_verdicts[0])  # fmt: skip
            data = bytecode.write(emit(described, found.kernel, found.kept))
            cells = " | ".join(counted(data, target) for target in TARGETS)
            why = ", ".join(mine.obstacles) or "–"
            kind = "pointer tile" if not mine.view.is_view else str(mine.view)
            yield f"| {family} | {name} | {kind} | {why} | {cells} |"
    yield f"\n{views} of {accesses} accesses are views ({views / accesses:.0%})"


def verdicts_table(cases: int) -> Iterator[str]:
    """Agreement with the compiler's remarks on a generated grid."""
    differing = [text for n in range(cases) if (text := agreement(case(random.Random(n)), n))]
    yield f"{cases - len(differing)} of {cases} cases agree (seeds 0 to {cases - 1}, sm_90)"
    yield from (f"- {text}" for text in differing)


def sweep_table() -> Iterator[str]:
    """How many compilations find the best of all, by the order in which they are made."""
    found = run_path(str(FOLDER / "kernels.py"), run_name="tile_ir_kernels")
    spaces = {
        "gemm": (found["gemm_choice"], {"rows": (64, 128, 256), "columns": (64, 128, 256),
                                        "depth": (32, 64, 128)}),
        "attention": (found["attention_choice"], {"block": (32, 64, 128, 256),
                                                  "keys_block": (32, 64, 128, 256)}),
    }  # fmt: skip
    yield ("| kernel | order | compilations until the best | seconds until the best, of all | "
           "least cost after 1, 2, 4, 8, 16, all | after 5, 10, 20, 40, 80 s |")  # fmt: skip
    yield "|---|---|---|---|---|---|"
    with tempfile.TemporaryDirectory() as folder:
        for name, (make, space) in spaces.items():
            store = Store(Path(folder) / f"{name}.sqlite")
            every = sweep(make, space, store, pool(2, preload=PRELOAD), ordering="exhaustive")
            least = min(cost for _, cost in every.curve())
            for ordering in ("model", "random", "exhaustive"):
                curve = sweep(make, space, store, ordering=ordering).curve()
                seconds, costs = zip(*curve, strict=True)
                best, numbers = costs.index(least), (1, 2, 4, 8, 16, len(curve))
                after = [bisect_right(seconds, limit) for limit in (5, 10, 20, 40, 80)]
                by_number, by_seconds = (
                    ", ".join(f"{costs[min(n, len(curve)) - 1] / least:.2f}" if n else "none"
                              for n in counts) for counts in (numbers, after)
                )  # fmt: skip
                yield (f"| {name} | {ordering} | {best + 1} | {seconds[best]:.0f} of "
                       f"{seconds[-1]:.0f} | {by_number} | {by_seconds} |")  # fmt: skip
            yield f"\n{name}: {every.funnel.text()}\n"


TABLES: dict[str, Callable[[], Iterator[str]]] = {
    "orders": orders_table,
    "targets": targets_table,
    "exports": exports_table,
    "layouts": layouts_table,
    "sweep": sweep_table,
}


NAMES = (*TABLES, "verdicts")


def _table(name: str) -> str:
    if name not in NAMES:
        raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(NAMES)}")
    return name


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tables", nargs="*", metavar="TABLE", type=_table, help=", ".join(NAMES))
    parser.add_argument("--cases", type=int, default=500)
    given = parser.parse_args()
    absent = compiler.missing("tileiras", "nvdisasm", "cuobjdump")
    if absent:
        sys.exit(absent)
    print(f"tileiras {compiler.version()}")
    for name in given.tables or ("orders", "targets", "exports", "layouts"):
        table = verdicts_table(given.cases) if name == "verdicts" else TABLES[name]()
        print(f"\n{name}\n")
        for line in table:
            print(line, flush=True)


if __name__ == "__main__":
    main()
