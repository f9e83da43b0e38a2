"""A kernel is what it reaches: helpers beside it, in other files, and helpers of helpers."""

from __future__ import annotations

import json
import textwrap

import pytest
from tools.nki_migrate.tests.command_line import Result, run

from nki_migrate.engine.call_graph import callers_first
from nki_migrate.engine.migration import migrate_source
from nki_migrate.index import FileIndex, Source
from nki_migrate.settings.request import Request

IMPORTS = """\
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
"""
KERNEL = """
@nki.jit
def kernel(x, y):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    a = nl.load(x)
    b = nl.load(y)
    c = helper(a, b)
    nl.store(out, c)
    return out
"""
ADDS = """
def helper(a, b):
    return nl.add(a, b, dtype=nl.float32)
"""
CASE = """\
schema = "nki-cases/1"
[[case]]
file = "k.py"
kernel = "kernel"
reference = "references.py:{reference}"
{more}
[[case.arg]]
name = "x"
dtype = "{dtype}"
shape = [64, 64]
fill = "integers"
low = 1
high = 100
[[case.arg]]
name = "y"
dtype = "{dtype}"
shape = [64, {columns}]
fill = "integers"
low = 1
high = 100
"""
REFERENCES = """
import numpy as np

def sum(x, y):
    return x.astype(np.float64) + y

def product(x, y):
    return x.astype(np.float64) * y

def doubled(x, y):
    return 2 * x.astype(np.float64) + y

def twice(x):
    return 2 * x.astype(np.float64)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)
    (tmp_path / "references.py").write_text(REFERENCES)
    return tmp_path


def fix(*options: str) -> Result:
    return run("fix", "--output-dir", "new", *options)


def case(folder, reference="sum", dtype="float32", columns=64, more=""):
    text = CASE.format(reference=reference, dtype=dtype, columns=columns, more=more)
    (folder / "cases.toml").write_text(text)


def equal(result: Result) -> bool:
    return json.loads(result.stdout)["verify"][0]["equal"]


def verified(*files: str, options: tuple[str, ...] = ()) -> Result:
    return fix(*files, "--verify", "--output-format", "json", *options)


# -- what the lists say


HANDS_OVER = """
@nki.jit
def kernel(x, y):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    helper(out, x, y)
    return out
"""
STORES = """
def helper(out, x, y):
    a = nl.load(x)
    b = nl.load(y)
    nl.store(out, ADDED)
"""


def test_a_kernel_waits_for_its_helper(folder):
    """Unknown shapes leave the helper to a human, and the kernel with it."""
    stores = STORES.replace("ADDED", "nl.add(a, b, dtype=nl.float32)")
    (folder / "k.py").write_text(IMPORTS + stores + HANDS_OVER)

    shown = fix("k.py").stdout

    assert "complete (" not in shown
    assert "helper (k.py:5), kernel (k.py:11, through helper)" in shown


def test_a_kernel_waits_for_what_a_helper_of_another_file_reaches(folder):
    stores = STORES.replace("nl.store(out, ADDED)", "inner(a, b, nl.float32)")
    (folder / "k.py").write_text(IMPORTS + "from parts import helper\n" + HANDS_OVER)
    (folder / "parts.py").write_text(IMPORTS + stores + INNER)

    shown = fix("k.py", "parts.py").stdout

    assert "complete (" not in shown
    assert "kernel (k.py:7, through inner)" in shown
    assert "helper (parts.py:5, through inner)" in shown


INNER = """
def inner(a, b, dtype):
    t = nisa.tensor_copy(a)
    return nl.add(t, b, dtype=dtype)
"""


def test_the_row_of_a_kernel_counts_what_its_helpers_leave(folder):
    (folder / "k.py").write_text(IMPORTS + "from parts import helper\n" + KERNEL)
    (folder / "parts.py").write_text(IMPORTS + MIXED)
    case(folder, "doubled", columns=1)

    row = json.loads(verified("k.py", "parts.py").stdout)["verify"][0]

    assert row["todos"] == 1


MIXED = """
def helper(a, b):
    twice = add(a, a)
    return add(twice, b)


def add(a, b):
    return nl.add(a, b)
"""


def test_a_kernel_that_verifies_runs_in_spite_of_open_findings(folder):
    """`nl.store` of what a helper returns still works under 0.6."""
    (folder / "k.py").write_text(IMPORTS + "from parts import helper\n" + KERNEL)
    (folder / "parts.py").write_text(IMPORTS + MIXED)
    case(folder, "doubled", columns=1)

    shown = fix("k.py", "parts.py", "--verify").stdout

    assert "not runnable yet" in fix("k.py", "parts.py", "--cases", "cases.toml").stdout
    assert "runnable, with manual items (1): kernel" in shown


# -- helpers that name nothing of the language


@pytest.mark.parametrize("elsewhere", [False, True], ids=["beside it", "in another file"])
def test_arithmetic_on_tiles_is_lowered_in_a_helper(folder, elsewhere):
    helper = "\ndef helper(a, b):\n    return a * b\n"
    (folder / "parts.py").write_text(helper.lstrip())
    if elsewhere:
        (folder / "k.py").write_text(IMPORTS + "from parts import helper\n" + KERNEL)
        (folder / "parts.py").write_text(IMPORTS + helper)
    else:
        (folder / "k.py").write_text(IMPORTS + helper + KERNEL)
    case(folder, "product")

    result = verified("k.py", "parts.py")

    assert equal(result)
    files = json.loads(result.stdout)["files"]
    assert "NKI1223" in {f["rule"] for file in files for f in file["findings"] if f["applied"]}


def test_a_function_of_numbers_stays(folder):
    text = (
        IMPORTS
        + "\ndef helper(a, b):\n    return a * b\n"
        + KERNEL.replace("helper(a, b)", "nl.add(a, b, dtype=nl.float32)\n    n = helper(2, 3)")
    )

    assert "return a * b\n" in migrate_source(text, "k.py", Request()).after


def test_callers_come_before_what_they_call():
    text = "def c(t): return nl.load(t)\ndef b(t): return c(t)\ndef a(t): return b(t) + c(t)\n"
    index = FileIndex(Source(IMPORTS + text + "@nki.jit\ndef k(x): return a(x)\n"))

    ordered = callers_first(index, index.functions.values())

    assert [f.name for f in ordered] == ["k", "a", "b", "c"]


def test_functions_that_call_each_other_end():
    text = "def a(t): return b(nl.load(t))\ndef b(t): return a(t)\n"
    index = FileIndex(Source(IMPORTS + text))

    assert len(callers_first(index, index.functions.values())) == 2


# -- what calls and runs tell of a helper


def test_the_calls_in_a_file_tell_the_sizes_in_a_helper():
    """A column handed to a helper does not have the other tile's shape, also with unsafe edits."""
    text = (
        IMPORTS
        + ADDS
        + textwrap.dedent(
            """
        @nki.jit
        def kernel(x, y):
            a = nl.load(x[0:128, 0:64])
            b = nl.load(y[0:128, 0:1])
            c = helper(a, b)
            return c
        """
        )
    )

    for unsafe in (False, True):
        after = migrate_source(text, "k.py", Request(unsafe_fixes=unsafe)).after
        assert "assert b.shape[1] == 1" in after
        assert "nisa.tensor_scalar(dst=a_shifted, data=a, op0=nl.add, operand0=b_f32)" in after


@pytest.mark.parametrize("unsafe", [(), ("--unsafe-fixes",)], ids=["safe", "unsafe"])
def test_no_edit_assumes_shapes_that_a_run_saw_differ(folder, unsafe):
    """The helper adds tiles of one shape, and then a column."""
    (folder / "k.py").write_text(IMPORTS + MIXED + KERNEL)
    case(folder, "doubled", columns=1)

    result = verified("k.py", options=unsafe)

    assert equal(result)
    found = json.loads(result.stdout)["files"][0]["findings"]
    (left,) = [f for f in found if not f["applied"] and f["rule"] == "NKI1220"]
    assert left["safety"] == "manual"
    assert left["message"].endswith("not in others: dimension 1 was 64 and 1 or 64")


def test_what_a_helper_returns_to_an_instruction_gets_a_name(folder):
    kernel = KERNEL.replace("c = helper(a, b)\n    nl.store(out, c)", "nl.store(out, helper(a, b))")
    (folder / "k.py").write_text(IMPORTS + ADDS + kernel)
    case(folder)

    assert equal(verified("k.py"))
    new = (folder / "new" / "k.py").read_text()
    assert "    helper_result = helper(a, b)\n    nisa.dma_copy(dst=out, src=helper_result)" in new


@pytest.mark.parametrize("op", ["add", "multiply", "minimum"])
@pytest.mark.parametrize("unsafe", [(), ("--unsafe-fixes",)], ids=["safe", "unsafe"])
def test_an_integer_tile_and_a_number_are_an_int32_where_a_run_saw_the_tile(folder, op, unsafe):
    """100 + 100 and 3 * 100 do not fit int8."""
    body = f"c = nl.add(nl.{op}(a, 100), nl.multiply(b, 1), dtype=nl.float32)"
    kernel = KERNEL.replace("x.dtype", "nl.float32").replace("c = helper(a, b)", body)
    (folder / "k.py").write_text(IMPORTS + kernel)
    (folder / "references.py").write_text(
        f"import numpy as np\ndef sum(x, y):\n    return np.{op}(x.astype(np.int64), 100) + y\n"
    )
    case(folder, dtype="int8")

    result = verified("k.py", options=unsafe)

    assert equal(result)
    assert [f for f in json.loads(result.stdout)["files"][0]["findings"] if f["assumption"]] == []
    assert "assert x.dtype == nl.int8" in (folder / "new" / "k.py").read_text()


# -- grids

COUNTED = """
@nki.jit
def kernel(x, y):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i = nl.program_id(0)
    rows = nl.load(x[nl.ds(i * 32, 32), 0:64])
    nl.store(out[nl.ds(i * 32, 32), 0:64], nl.multiply(rows, nl.num_programs(0) * 1.0))
    return out
"""


def test_a_grid_of_cores_stays_one_at_the_launch(folder):
    (folder / "k.py").write_text(IMPORTS + COUNTED)
    case(folder, "twice", more="grid = [2]")
    (folder / "references.py").write_text(REFERENCES.replace("twice(x)", "twice(x, y)"))

    assert equal(verified("k.py"))


GRIDS = {
    "a second axis": ("j = nl.program_id(1)", "grid = [2, 2]"),
    "a second axis by its name": ("j = nl.program_id(axis=1)", "grid = [2, 2]"),
    "a count of a second axis": ("j = nl.num_programs(1)", "grid = [2, 2]"),
    "an axis that a variable names": ("j = nl.program_id(y.shape[1] - 63)", "grid = [2, 2]"),
    "four programs": ("j = nl.program_id(0)", "grid = [4]"),
    "a count of four": ("j = nl.num_programs(0)", "grid = [4]"),
}


@pytest.mark.parametrize("asked", GRIDS)
def test_what_is_no_core_is_a_todo(folder, asked):
    line, grid = GRIDS[asked]
    (folder / "k.py").write_text(
        IMPORTS
        + KERNEL.replace("    a = nl.load", f"    {line}\n    a = nl.load").replace(
            "c = helper(a, b)", "c = nl.multiply(a, 2.0)"
        )
    )
    case(folder, more=grid)

    shown = fix("k.py", "--cases", "cases.toml").stdout

    assert "not runnable yet (1): kernel" in shown
    new = (folder / "new" / "k.py").read_text()
    assert "# TODO(nki-migrate NKI1119): " in new and f"\n    {line}\n" in new
    run("fix", "new/k.py")
    assert (folder / "new" / "k.py").read_text() == new
