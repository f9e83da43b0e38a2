"""Unrolled programs become loops that say the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import count

import numpy as np
import pytest

from neuroncore.program import (
    Allocate,
    Loop,
    Program,
    Statement,
    execute_program,
    parse_program,
    print_program,
    reroll,
    walk,
)

RANDOM = np.random.default_rng(5)


def program(body: list[str], head: str = "x: float32[512, 64]", result: str = "out") -> Program:
    made = "".join(f"    {line}\n" for text in body for line in text.strip("\n").splitlines())
    return parse_program(
        f'program("trn2", "0.6")\ndef p({head}):\n'
        f"    out = buffer(float32[512, 64], shared_hbm)\n{made}    return {result}\n"
    )


def body_of(program: Program) -> list[str]:
    return [line[4:] for line in print_program(program).splitlines()[3:-1]]


def rolled(body: list[str], head: str = "x: float32[512, 64]") -> list[str]:
    """The re-rolled body, after both programs gave identical bytes."""
    before = program(body, head)
    after = reroll(before)
    given = [RANDOM.standard_normal(b.shape).astype(b.dtype.storage) for b in before.parameters]
    first, second = ([a.copy() for a in given] for _ in range(2))
    results = zip(
        [*execute_program(before, first), *first],
        [*execute_program(after, second), *second],
        strict=True,
    )
    assert all(a.tobytes() == b.tobytes() for a, b in results)
    return body_of(after)


def rows(i: int) -> str:
    return f"{128 * i}:{128 * i + 128}, :"


def test_copies_that_advance_by_a_constant_step_are_a_loop():
    assert rolled([f"dma_copy(dst=out[{rows(i)}], src=x[{rows(i)}])" for i in range(4)]) == [
        "for i in range(4):",
        "    dma_copy(dst=out[128*i : 128*i + 128, :], src=x[128*i : 128*i + 128, :])",
    ]


def test_a_tile_allocated_in_every_iteration_belongs_to_it():
    tile = """
t{i} = buffer(float32[128, 64], sbuf)
dma_copy(dst=t{i}[:, :], src=x[{rows}])
dma_copy(dst=out[{rows}], src=t{i}[:, :])
"""

    assert rolled([tile.format(i=i, rows=rows(i)) for i in range(4)]) == [
        "for i in range(4):",
        "    t0 = buffer(float32[128, 64], sbuf)",
        "    dma_copy(dst=t0[:, :], src=x[128*i : 128*i + 128, :])",
        "    dma_copy(dst=out[128*i : 128*i + 128, :], src=t0[:, :])",
    ]


def test_inner_loops_are_found_before_outer_ones():
    def blocks(i: int) -> str:
        made = f"t{i} = buffer(float32[128, 64], sbuf)\n"
        for j in range(4):
            at = slice(16 * j, 16 * j + 16)
            made += f"dma_copy(dst=t{i}[:, {at.start}:{at.stop}], src=x[{128 * i}:{128 * i + 128}, "
            made += f"{48 - at.start}:{64 - at.start}])\n"
        return made + f"dma_copy(dst=out[{rows(i)}], src=t{i}[:, :])"

    assert rolled([blocks(i) for i in range(4)]) == [
        "for i in range(4):",
        "    t0 = buffer(float32[128, 64], sbuf)",
        "    for j in range(4):",
        "        dma_copy(dst=t0[:, 16*j : 16*j + 16], "
        "src=x[128*i : 128*i + 128, -16*j + 48 : -16*j + 64])",
        "    dma_copy(dst=out[128*i : 128*i + 128, :], src=t0[:, :])",
    ]


def test_loops_that_make_their_own_tiles_are_iterations_of_an_outer_one():
    tile = "t{i}{j} = buffer(float32[64, 64], sbuf)\ndma_copy(dst=t{i}{j}[:, :], src=x[{low}:{low}"
    tile += " + 64, :])\ndma_copy(dst=out[{low}:{low} + 64, :], src=t{i}{j}[:, :])"
    body = []
    for i in range(3):
        body += [tile.format(i=i, j=j, low=128 * i + 64 * j) for j in range(2)]
        body.append(f"dma_copy(dst=out[{128 * i}:{128 * i + 128}, 0:8], src=x[0:128, 0:8])")

    after = rolled(body)

    assert [line.strip() for line in after if "for" in line] == [
        "for i in range(3):",
        "for j in range(2):",
    ]


def test_tiles_that_outlive_their_iteration_become_one_buffer():
    load = "t{i} = buffer(float32[128, 64], sbuf)\ndma_copy(dst=t{i}[:, :], src=x[{rows}])"
    store = "dma_copy(dst=out[{rows}], src=t{i}[:, :])"
    body = [text.format(i=i, rows=rows(i)) for text in (load, store) for i in range(4)]

    assert rolled(body) == [
        "t0 = buffer(float32[128, 4, 64], sbuf)",
        "for i in range(4):",
        "    dma_copy(dst=t0[:, i, :], src=x[128*i : 128*i + 128, :])",
        "for i in range(4):",
        "    dma_copy(dst=out[128*i : 128*i + 128, :], src=t0[:, i, :])",
    ]


def test_a_folded_tile_keeps_its_columns_rows_and_dtype_views():
    load = "t{i} = buffer(float32[128, 64], sbuf)\ndma_copy(dst=t{i}[:, :], src=x[{rows}])"
    use = """
dma_copy(dst=out[{low}:{mid}, :], src=t{i}[64:128, :])
dma_copy(dst=out[{mid}:{high}, 8:24], src=t{i}[0:64, 16:32])
tensor_scalar(
    dst=t{i}.ap([[128, 128], [1, 4]], 6, dtype=uint16),
    data=t{i}.ap([[128, 128], [1, 4]], 2, dtype=uint16), operand0=3, op0=bitwise_xor,
)
dma_copy(dst=out[{mid}:{high}, 32:64], src=t{i}[64:128, 0:32])
"""
    spots = [{"i": i, "low": 128 * i, "mid": 128 * i + 64, "high": 128 * i + 128} for i in range(4)]
    body = [load.format(i=i, rows=rows(i)) for i in range(4)]
    body += ["""tensor_copy(dst=t3[0:64, 0:64], src=t0[0:64, 0:64])"""]

    after = rolled([*body, *(use.format(**spot) for spot in spots)])

    assert after[0] == "t0 = buffer(float32[128, 4, 64], sbuf)"
    assert "    dma_copy(dst=out[128*i : 128*i + 64, :], src=t0[64:128, i, :])" in after


def test_a_folded_tile_is_still_walked_over_its_partitions():
    load = "t{i} = buffer(float32[128, 64], sbuf)\ndma_copy(dst=t{i}[:, :], src=x[{rows}])"
    quarters = "\n".join(
        f"dma_copy(dst=out[{{row}}+{p}:{{row}}+{p + 32}, :], src=t{{i}}[{p}:{p + 32}, :])"
        for p in range(0, 128, 32)
    )
    body = [load.format(i=i, rows=rows(i)) for i in range(4)]

    after = rolled([*body, *(quarters.format(i=i, row=128 * i) for i in range(4))])

    assert after[-1].endswith("src=t0[32*j : 32*j + 32, i, :])")


@pytest.mark.filterwarnings("ignore:dma_copy. dst has . partitions? and does not start")
def test_tiles_walked_from_one_partition_into_the_next_stay_separate():
    """In a tile of its own the offsets rise by 32 throughout, in a joined one they would not."""
    body = []
    for i in range(3):
        body.append(f"t{i} = buffer(float32[2, 64], sbuf)")
        for half in range(4):
            to = f"t{i}[{half // 2}:{half // 2 + 1}, {half % 2 * 32}:{half % 2 * 32 + 32}]"
            row = 4 * i + half
            body.append(f"dma_copy(dst={to}, src=x[{row}:{row + 1}, 0:32])")
    body += [f"dma_copy(dst=out[{2 * i}:{2 * i + 2}, :], src=t{i}[:, :])" for i in range(3)]

    after = rolled(body)

    assert sum("buffer(float32[2, 64], sbuf)" in line for line in after) == 3


def test_tiles_used_in_loops_that_begin_later_become_one_buffer():
    load = """
t{i} = buffer(float32[128, 64], sbuf)
for k in range(5, 13):
    dma_copy(dst=t{i}[:, 8*k + -40 : 8*k + -32], src=x[{rows}8*k + -40 : 8*k + -32])
"""
    store = "dma_copy(dst=out[{rows}:], src=t{i}[:, :])"
    body = [text.format(i=i, rows=rows(i)[:-1]) for text in (load, store) for i in range(4)]

    after = rolled(body)

    assert after[0] == "t0 = buffer(float32[128, 4, 64], sbuf)"
    assert "dma_copy(dst=t0[:, k, 8*i - 40 : 8*i - 32], " in after[3]


def test_a_tile_seen_in_elements_that_do_not_fill_it_stays_separate():
    """The second of two tiles of six bytes does not begin with a whole float32."""
    body = []
    for i in range(2):
        body += [
            f"t{i} = buffer(uint8[2, 6], sbuf)",
            f"dma_copy(dst=t{i}[:, :], src=y[{2 * i}:{2 * i + 2}, :])",
        ]
    body += [
        f"dma_copy(dst=out[{i}:{i + 1}, 0:1], src=t{i}.ap([[1, 1], [1, 1]], 0, dtype=float32))"
        for i in range(2)
    ]

    after = rolled(body, "y: uint8[4, 6]")

    assert sum("= buffer(uint8[2, 6], sbuf)" in line for line in after) == 2


@pytest.mark.filterwarnings("ignore:dma_copy. src has . partitions? and does not start")
def test_steps_over_partitions_and_over_joined_tiles_are_two_loops():
    """Before the tiles are joined, the last two stores are a loop of the step that later leads
    from one tile to the next."""
    load = (
        "t{i} = buffer(float32[2, 64], sbuf)\ndma_copy(dst=t{i}[:, :], src=x[{i}:{i} + 2, :])\n"
        "dma_copy(dst=t{i}[:, 32:64], src=x[4*{i}:4*{i} + 2, 32:64])"
    )
    store = "dma_copy(dst=out[{0}:{0} + 1, :], src=t{1}[{2}:{2} + 1, :])"
    body = [load.format(i=i) for i in range(3)]
    places = ((0, 0), (1, 0), (2, 0), (2, 1))
    body += [store.format(4 * row, *place) for row, place in enumerate(places)]

    assert rolled(body)[4:] == [
        "for i in range(2):",
        "    dma_copy(dst=out[4*i : 4*i + 1, :], src=t0[0:1, i, :])",
        "for i in range(2):",
        "    dma_copy(dst=out[4*i + 8 : 4*i + 9, :], src=t0[i : i + 1, 2, :])",
    ]


def test_a_joined_tile_does_not_join_one_that_is_like_its_parts():
    """Only when two of the three have become one is it alive together with the third."""
    body = ["c = buffer(float32[128, 64], hbm)"]
    for i, name in enumerate("ab"):
        body += [
            f"{name} = buffer(float32[128, 64], hbm)",
            f"dma_copy(dst={name}[:, :], src=x[{rows(i)}])",
        ]
    stores = [f"dma_copy(dst=out[{rows(i)}], src={name}[:, :])" for i, name in enumerate("abbc")]
    body += [*stores[:2], f"dma_copy(dst=c[:, :], src=x[{rows(2)}])", *stores[2:]]

    after = rolled(body)

    assert after[:2] == [
        "c = buffer(float32[128, 64], hbm)",
        "a = buffer(float32[2, 128, 64], hbm)",
    ]


def test_tiles_of_which_only_one_outlives_its_iteration_stay_separate():
    """One buffer for all of them would hold memory without a use."""
    tile = (
        "t{i} = buffer(float32[128, 64], sbuf)\ndma_copy(dst=t{i}[:, :], src=x[{rows}])\n"
        "dma_copy(dst=out[{rows}], src=t{i}[:, :])"
    )
    body = [tile.format(i=i, rows=rows(i)) for i in range(4)]

    after = rolled([*body, "dma_copy(dst=x[0:128, :], src=t0[:, :])"])

    assert "t0 = buffer(float32[128, 64], sbuf)" in after


def test_tiles_that_are_not_alive_together_do_not_become_one_buffer():
    """A software pipeline uses each tile one iteration later: two are alive, not four."""
    load = "t{i} = buffer(float32[128, 64], sbuf)\ndma_copy(dst=t{i}[:, :], src=x[{rows}])"
    store = "dma_copy(dst=out[{rows}], src=t{i}[:, :])"
    body = [load.format(i=0, rows=rows(0))]
    for i in range(1, 4):
        body += [load.format(i=i, rows=rows(i)), store.format(i=i - 1, rows=rows(i - 1))]

    after = rolled([*body, store.format(i=3, rows=rows(3))])

    assert not any("float32[128, 4, 64]" in line for line in after)


@pytest.mark.parametrize(
    "second",
    [
        "dma_copy(dst=out[128:256, :], src=y[128:256, :])",
        "dma_copy(dst=out[128:192, :], src=x[128:192, :])",
        "dma_copy(dst=out[128:256, :], src=x[128:256, :], name='b')",
        "dma_copy(dst=out[128:256, :], src=x[128:256, :], oob_mode=skip)",
    ],
    ids=["another parameter", "another shape", "another name", "another attribute"],
)
def test_statements_that_differ_in_more_than_offsets_stay_separate(second):
    first = "dma_copy(dst=out[0:128, :], src=x[0:128, :])"

    assert rolled([first, second], "x: float32[512, 64], y: float32[512, 64]") == [
        first,
        second.replace("'b'", "'b'"),
    ]


def test_steps_that_change_begin_another_loop():
    starts = [0, 128, 256, 64, 192]
    body = [f"dma_copy(dst=out[{s}:{s + 128}, :], src=x[{s}:{s + 128}, :])" for s in starts]

    assert [line for line in rolled(body) if line.startswith("for")] == [
        "for i in range(3):",
        "for i in range(2):",
    ]


def test_two_buffers_in_turn_are_an_inner_loop_over_one():
    body = [f"{name} = buffer(float32[128, 64], sbuf)" for name in "ab"]
    for i in range(4):
        body += [
            f"dma_copy(dst={'ab'[i % 2]}[:, :], src=x[{rows(i)}])",
            f"dma_copy(dst=out[{rows(i)}], src={'ab'[i % 2]}[:, :])",
        ]

    assert rolled(body) == [
        "a = buffer(float32[128, 2, 64], sbuf)",
        "for i in range(2):",
        "    for j in range(2):",
        "        dma_copy(dst=a[:, j, :], src=x[256*i + 128*j : 256*i + 128*j + 128, :])",
        "        dma_copy(dst=out[256*i + 128*j : 256*i + 128*j + 128, :], src=a[:, j, :])",
    ]


@pytest.mark.parametrize("trips", [15, 16, 17, 63, 64, 65, 200])
def test_a_loop_is_as_long_as_its_steps_are_equal(trips):
    copy = "dma_copy(dst=out[{0}:{1}, :], src=x[{0}:{1}, :])"
    steps = [copy.format(i, i + 1) for i in [*range(trips), 300, 302]]

    assert rolled(steps) == [
        f"for i in range({trips}):",
        "    dma_copy(dst=out[i : i + 1, :], src=x[i : i + 1, :])",
        "for i in range(2):",
        "    dma_copy(dst=out[2*i + 300 : 2*i + 301, :], src=x[2*i + 300 : 2*i + 301, :])",
    ]


def test_loops_that_use_their_own_tiles_differently_stay_separate():
    def inner(i: int, j: int) -> str:
        tiles, at = (f"a{i}{j}", f"b{i}{j}"), 16 * j
        made = "".join(f"{tile} = buffer(float32[128, 16], sbuf)\n" for tile in tiles)
        for tile, column in zip(tiles, (at, 48 - at), strict=True):
            made += f"dma_copy(dst={tile}[:, :], src=x[0:128, {column}:{column + 16}])\n"
        return (
            made
            + f"dma_copy(dst=out[{128 * i}:{128 * i + 128}, {at}:{at + 16}], src={tiles[i]}[:, :])"
        )

    after = rolled([inner(i, j) for i in range(2) for j in range(4)])

    assert [line for line in after if line.startswith("for")] == ["for i in range(4):"] * 2


def test_a_zero_has_a_sign():
    body = ["t = buffer(float32[128, 64], sbuf)", "dma_copy(dst=t[:, :], src=x[0:128, :])"]
    body += [
        f"tensor_scalar(dst={column}, data={column}, operand0={zero}, op0=multiply)"
        for column, zero in ((f"t[:, {i}:{i + 1}]", "-0.0" if i % 2 else "0.0") for i in range(4))
    ]

    after = rolled([*body, f"dma_copy(dst=out[{rows(0)}], src=t[:, :])"])

    assert sum("operand0=-0.0" in line for line in after) == 1


def test_rolled_programs_do_what_the_unrolled_ones_do():
    """In the same order, element for element."""
    loops = 0
    for seed in range(40):
        body = _random_body(random.Random(seed), 2, {}, count())
        before = program(body)

        after = reroll(before)

        assert [*_executed(after.body, {}, {})] == [*_executed(before.body, {}, {})], seed
        loops += sum(isinstance(s, Loop) for s in walk(after.body))
    assert loops > 100


def _random_body(
    chance: random.Random, depth: int, bases: dict[str, int], numbers: Iterator[int]
) -> list[str]:
    """Copies through tiles in nests of loops that are written out, now and then out of step."""
    made: list[str] = []
    for _ in range(chance.randint(1, 3)):
        if depth and chance.random() < 0.6:
            steps = [chance.choice([0, 1, 2, 8]) for _ in range(2)]
            state = chance.getstate()
            for trip in range(chance.randint(2, 4)):
                if chance.random() < 0.9:
                    chance.setstate(state)
                moved = {n: bases.get(n, 0) + trip * s for n, s in zip("rc", steps, strict=True)}
                made += _random_body(chance, depth - 1, moved, numbers)
        else:
            made.append(_copies(chance, bases, numbers))
    return made


def _copies(chance: random.Random, bases: dict[str, int], numbers: Iterator[int]) -> str:
    row, column = bases.get("r", 0) % 256, bases.get("c", 0) % 48
    source = f"x[{row}:{row + 64}, {column}:{column + 8}]"
    if chance.random() < 0.5:
        return f"dma_copy(dst=out[{row}:{row + 64}, 0:8], src={source})"
    tile = f"t{next(numbers)}"
    return (
        f"{tile} = buffer(float32[64, 8], sbuf)\ndma_copy(dst={tile}[:, :], src={source})\n"
        f"dma_copy(dst=out[{row}:{row + 64}, 8:16], src={tile}[:, :])"
    )


def _executed(
    body: tuple[Statement, ...], at: dict[str, int], alive: dict[str, int]
) -> Iterator[object]:
    """The calls in order with the elements that they name; tiles are numbered as they are made."""
    for statement in body:
        if isinstance(statement, Loop):
            for value in range(statement.start, statement.stop, statement.step):
                yield from _executed(statement.body, {**at, statement.variable: value}, alive)
        elif isinstance(statement, Allocate):
            alive["made"] = alive.get("made", 0) + 1
            alive[statement.buffer.name] = alive["made"]
        else:
            yield (
                statement.instruction,
                *(
                    (alive.get(a.buffer, a.buffer), a.offset.value(at), a.shape, a.strides)
                    for a in statement.accesses.values()
                ),
            )
