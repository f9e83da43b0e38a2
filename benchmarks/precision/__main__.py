"""Prints how far every operation is from float64; `--write` puts the table into docs/precision.md.

python -m benchmarks.precision [--write]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.precision.measure import Measured, measure
from benchmarks.precision.operations import OPERATIONS, Operation

PAGE = Path(__file__).parents[2] / "docs" / "precision.md"
BEGIN, END = "<!-- measured: begin -->\n", "<!-- measured: end -->"
DTYPES = ("float32", "bfloat16", "float16")
HEAD = """\
| operation | error in | float32 | bfloat16 | float16 | on |
|---|---|---|---|---|---|
"""


def main(argv: Sequence[str] | None = None) -> int:
    """1 where an error is above its bound."""
    parser = argparse.ArgumentParser("python -m benchmarks.precision", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    asked = parser.parse_args(argv)
    measured = [m for operation in OPERATIONS for m in in_every_dtype(operation)]
    text = HEAD + "".join(row(o, [m for m in measured if m.operation is o]) for o in OPERATIONS)
    print(text, end="")
    if asked.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(before + BEGIN + text + END + rest.partition(END)[2], encoding="utf-8")
    above = [m for m in measured if max(m.graph, m.kernel) > m.at_most]
    for m in above:
        print(f"ABOVE: {m.operation.name} in {m.dtype}: {m.graph:.3g}, {m.kernel:.3g}")
    return int(bool(above))


def in_every_dtype(operation: Operation) -> Iterator[Measured]:
    """The operation in each dtype that it has a bound for."""
    return (measure(operation, dtype) for dtype in operation.at_most)


def row(operation: Operation, measured: Sequence[Measured]) -> str:
    """One line of the table: a bound for each dtype, what the graph has and what the kernel has."""
    cells = {m.dtype: cell(m) for m in measured}
    unit, inputs = str(operation.unit.__doc__), str(operation.inputs.__doc__)
    shown = (f"`{operation.name}`", unit, *(cells.get(d, "") for d in DTYPES), inputs)
    return f"| {' | '.join(shown)} |\n"


def cell(m: Measured) -> str:
    kind = "" if m.result == m.dtype else f" ({m.result})"
    return f"≤ {m.at_most:.3g}: {m.graph:.3g}, {m.kernel:.3g}{kind}"


if __name__ == "__main__":
    raise SystemExit(main())
