"""The litmus catalogue: small kernels whose orders were derived manually.

The expectation is held against counted bytes (the checker's cells, and plain sets of bytes), and
the analysis against the expectation.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from packages.tokenplan.tests import brute_force

from neuroncore.layout import Swizzle
from neuroncore.program import Affine, parse_program
from tokenplan import analyse
from tokenplan.checker import CheckOptions, check_plan, read_plan_file
from tokenplan.kernel.model import PLAIN, Access, Buffer, Kernel, Loop, Mode, Op
from tokenplan.kernel.program_reader import read
from tokenplan.report import plan_file

HERE = Path(__file__).parent
GEOMETRY = tomllib.loads((HERE / "geometry.toml").read_text("utf-8"))
PROGRAMS = tomllib.loads((HERE / "programs.toml").read_text("utf-8"))
KINDS = {"RAW": "WR", "WAR": "RW", "WAW": "WW"}
"""Kind -> what the first and the second copy do."""
NAMES = {mode: kind for kind, mode in KINDS.items()}
HEADER = 'program("trn2", "0.6")'

Orders = set[tuple[str, str, tuple[int, ...], str]]
"""Earlier, later, distance, kind."""


def copy_text(name: str, mode: str, region: str, tile: list[int]) -> str:
    other = f"[0:{tile[0]}, 0:{tile[1]}]"
    ends = (region, f"x{other}") if mode == "W" else (f"y{other}", region)
    return f'dma_copy(dst={ends[0]}, src={ends[1]}, name="{name}")'


def program_of(case: dict[str, Any], modes: str) -> str:
    """The two copies in their loops; the other ends of the copies are tensors of their own."""
    tensors = ", ".join(f"{name}: float32[64, 16]" for name in "axy")
    lines, indent = [HEADER, f"def litmus({tensors}):"], "    "
    for loop in case["loops"]:
        lines.append(f"{indent}for {loop}:")
        indent += "    "
    tiles = case["tile"], case.get("second_tile", case["tile"])
    for name, mode, tile in zip(("first", "second"), modes, tiles, strict=True):
        lines.append(indent + copy_text(name, mode, case[name], tile))
    return "\n".join([*lines, "    return y"])


def expected(case: dict[str, Any], modes: str) -> Orders:
    """The orders that `needed` lists for copies of these modes."""
    does = dict(zip(("first", "second"), modes, strict=True))
    found = set()
    for text in case["needed"]:
        earlier, later, *distance = text.split()
        both = does[earlier] + does[later]
        if both != "RR":
            found.add((earlier, later, tuple(map(int, distance)), NAMES[both]))
    return found


def parsed(needed: list[str]) -> Orders:
    split = [text.split() for text in needed]
    return {(a, b, tuple(map(int, distance)), kind) for a, b, *distance, kind in split}


def orders_by_bytes(kernel: Kernel, over: list[str]) -> Orders:
    """Nearest conflicts per pair, kind and buffer, from sets of the bytes of all instances."""
    found = brute_force.nearest(kernel)
    return {(a, b, at, kind) for (a, b, buffer, kind), at in found.items() if buffer in over}


def orders_by_analysis(kernel: Kernel, over: list[str]) -> Orders:
    return {
        (edge.source, edge.sink, edge.distance, edge.kind)
        for edge in analyse(kernel).edges
        if edge.status != "removed" and edge.buffer in over
    }


def assert_all_agree(kernel: Kernel, needed: Orders, over: list[str]) -> None:
    assert orders_by_bytes(kernel, over) == needed
    assert orders_by_analysis(kernel, over) == needed
    file = read_plan_file(plan_file.write(analyse(kernel)))
    assert [str(f) for f in check_plan(file, CheckOptions(mutate=True)).findings] == []


CASES = [
    pytest.param(case, kind, id=f"{kind}-{name}")
    for name, case in GEOMETRY.items()
    for kind in case.get("kinds", KINDS)
]


@pytest.mark.parametrize("case, kind", CASES)
def test_two_copies_need_the_orders_that_their_places_ask_for(case, kind):
    kernel = read(parse_program(program_of(case, KINDS[kind])))
    assert_all_agree(kernel, expected(case, KINDS[kind]), ["a"])


@pytest.mark.parametrize("case", PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_needs_these_orders(case):
    kernel = read(parse_program(f"{HEADER}\n{case['program']}"))
    assert_all_agree(kernel, parsed(case["needed"]), case["over"])


# -- what no program text says ---------------------------------------------------------------------


def kernel_of(buffer: Buffer, trips: int, **ops: Access) -> Kernel:
    """Operations with one access each in a loop k."""
    body = tuple(Op(name, "nop", "vector", ("k",), (access,)) for name, access in ops.items())
    return Kernel("litmus", "trn2", {buffer.id: buffer}, (Loop("k", "k", trips, 0, 1, body),))


def touch(mode: str, constant: int, per_iteration: int, width: int, swizzle=PLAIN) -> Access:
    offset = Affine(constant) + Affine.variable("k", per_iteration)
    return Access("a", Mode(mode), offset, (), (), width, swizzle=swizzle)


@pytest.mark.parametrize("modes", KINDS.values(), ids=KINDS)
def test_a_loop_that_never_runs_needs_nothing(modes):
    ops = {"first": touch(modes[0], 0, 0, 8), "second": touch(modes[1], 0, 0, 8)}
    assert_all_agree(kernel_of(Buffer("a", "sbuf", (64,), 1), 0, **ops), set(), ["a"])


@pytest.mark.parametrize("modes", KINDS.values(), ids=KINDS)
def test_swizzled_rows_meet_where_unswizzled_ones_do(modes):
    """The same swizzle on both sides: row k of 16 bytes at 16 k ^ (its bits), one iteration on."""
    swizzle = Swizzle.xor(2, 2, 2)
    ops = {
        "first": touch(modes[0], 0, 16, 16, swizzle),
        "second": touch(modes[1], 16, 16, 16, swizzle),
    }
    kernel = kernel_of(Buffer("a", "sbuf", (256,), 1), 4, **ops)
    assert_all_agree(kernel, {("second", "first", (1,), NAMES[modes[::-1]])}, ["a"])


def test_a_swizzle_moves_a_byte_next_to_where_it_was():
    """Bit 1 flips bit 0: bytes 2 and 3 change places, so 2 of one view is 3 of another."""
    flipped = Swizzle((1, 3))
    write = touch("W", 2, 4, 1, flipped)
    for byte, needed in ((3, {("write", "read", (0,), "RAW")}), (2, set())):
        ops = {"write": write, "read": touch("R", byte, 4, 1)}
        kernel = kernel_of(Buffer("a", "sbuf", (64,), 1), 3, **ops)
        assert orders_by_bytes(kernel, ["a"]) == needed
        found = orders_by_analysis(kernel, ["a"])
        assert needed <= found, "an order is lost"
        file = read_plan_file(plan_file.write(analyse(kernel)))
        assert check_plan(file).findings == []


@pytest.mark.parametrize("stride", [2**31, 2**32, 2**33])
def test_offsets_that_differ_by_a_power_of_two_beyond_an_index_do_not_meet(stride):
    """Arithmetic of 32 bits would see one address: ours is exact, and says what it assumes."""
    large = Buffer("a", "hbm", (2**34,), 1)
    ops = {"write": touch("W", 0, 8, 8), "read": touch("R", stride, 8, 8)}
    kernel = kernel_of(large, 4, **ops)
    assert_all_agree(kernel, set(), ["a"])
    (removed,) = (e for e in analyse(kernel).edges if (e.source, e.sink) == ("write", "read"))
    assert removed.status == "removed"
    assert any("2^31" in text for text in removed.assumes)


def test_offsets_beyond_an_index_that_meet_do():
    large = Buffer("a", "hbm", (2**34,), 1)
    ops = {"write": touch("W", 2**33, 8, 8), "read": touch("R", 2**33 - 8, 8, 8)}
    kernel = kernel_of(large, 4, **ops)
    assert_all_agree(kernel, {("write", "read", (1,), "RAW")}, ["a"])
