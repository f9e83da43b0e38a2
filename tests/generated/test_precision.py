"""docs/precision.md: its bounds hold today, and equal the bounds of the code."""

from __future__ import annotations

import re

import numpy as np
import pytest
from benchmarks.precision.__main__ import BEGIN, DTYPES, END, PAGE
from benchmarks.precision.measure import error, measure
from benchmarks.precision.operations import OPERATIONS

CELL = re.compile(r"≤ (\S+): (\S+), (\S+?)(?: \(\w+\))?$")


@pytest.mark.parametrize(
    ("operation", "dtype"),
    [pytest.param(o, d, id=f"{o.name}-{d}") for o in OPERATIONS for d in o.at_most],
)
def test_no_error_is_above_its_bound(operation, dtype):
    measured = measure(operation, dtype)

    assert measured.graph <= measured.at_most
    assert measured.kernel <= measured.at_most


def test_the_page_states_the_bounds_of_the_code_and_holds_them():
    """When this fails: python -m benchmarks.precision --write"""
    table = PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0]
    rows = {cells[1].strip(" `"): cells for cells in map(split_row, table.splitlines()[2:])}

    assert list(rows) == [operation.name for operation in OPERATIONS]
    for operation in OPERATIONS:
        for dtype, text in zip(DTYPES, rows[operation.name][3:6], strict=True):
            cell = CELL.match(text.strip())
            assert (cell is None) == (dtype not in operation.at_most)
            if cell is not None:
                stated, graph, kernel = map(float, cell.groups())
                assert stated == float(f"{operation.at_most[dtype]:.3g}")
                assert max(graph, kernel) <= stated


def split_row(line: str) -> list[str]:
    return re.split(r"(?<!\\)\|", line)


def test_sine_is_within_3e_7_in_float32():
    bounds = {o.name: o.at_most["float32"] for o in OPERATIONS if o.name in ("sin", "cos")}

    assert bounds == {"sin": 3e-7, "cos": 3e-7}


def test_an_error_is_seen():
    add = next(o for o in OPERATIONS if o.name == "x * y")
    x = np.array([[1.5, 2.0]], np.float32)

    assert error(add, x * x, (x, x)) == 0
    assert error(add, np.nextafter(x * x, np.float32(9)), (x, x)) == 1
    assert error(add, x * np.float32("nan"), (x, x)) == np.inf
