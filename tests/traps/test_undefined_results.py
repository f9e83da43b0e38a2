"""Options.undefined_results "poison": NaN, or a sentinel that the check recognises."""

from __future__ import annotations

import pytest
from trap_examples import run

from neuroncore.checks.traps import Example

NUMBERS = """
@nki.jit
def numbers(x):
    tile = nl.ndarray((16, 64), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.tensor_copy(dst=tile, src=load(x))
    values = nl.ndarray((16, 32), dtype=nl.bfloat16, buffer=nl.sbuf)
    places = nl.ndarray((16, 32), dtype=nl.uint32, buffer=nl.sbuf)
    nisa.topk(values, places, tile, 1024)
    return store(places)


result = numbers(np.arange(1024, dtype=np.float32).reshape(16, 64))
assert (result == 0xDEADBEEF).sum() == {count}
"""


def test_undefined_integers_are_a_sentinel_that_the_check_recognises():
    example = Example(NUMBERS.format(count=16 * 30))

    (found,) = [
        f for f in run("numbers.py", example, undefined_results="poison").findings
        if f.label == "traps[undefined]"
    ]  # fmt: skip

    assert found.message == "the kernel returns 480 undefined integers"


GATHERED = """
@nki.jit
def roots(x, at):
    tile, rows = load(x), nl.ndarray({index}, dtype=nl.{dtype}, buffer=nl.sbuf)
    nisa.dma_copy(dst=rows, src=at)
    dst = nl.ndarray((16, 8), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=dst, value=1.0)
    nisa.activation(dst={dst}, op=nl.sqrt, data=tile)
    return store(dst)


x = np.full((16, 2), 4.0, np.float32)
x[5, 1] = 0.0
at = np.full({index}, {offset}, np.{dtype})
{more}
expected = np.ones((16, 8), np.float32)
expected[:, [{columns}]] = 2
expected[5, [{columns}][1]] = np.nan
result = roots(x, at)
assert np.array_equal(result, expected, equal_nan=True), result
"""
BY_NUMBER = {
    "index": "(1, 1)", "dtype": "int32", "offset": 3, "columns": "3, 4", "more": "",
    "dst": "dst.ap([[8, 16], [1, 2]], scalar_offset=rows, indirect_dim=1)",
}  # fmt: skip
BY_TILE = {
    "index": "(16, 1)", "dtype": "uint16", "offset": 0, "columns": "6, 2",
    "more": "at[0], at[1] = 6, 2", "dst": "dst.indirect(rows, num_elem=2)",
}  # fmt: skip


@pytest.mark.parametrize(("place", "target"), [(BY_NUMBER, "trn2"), (BY_TILE, "trn3")])
def test_elements_at_places_that_an_index_names_are_overwritten(place, target):
    example = Example(GATHERED.format(**place), target=target)

    assert run("gathered.py", example, undefined_results="poison").error is None


def test_nothing_is_overwritten_unless_it_is_requested():
    outcome = run("numbers.py", Example(NUMBERS.format(count=0)))

    assert [f.label for f in outcome.findings] == ["traps[HW25]"]


def test_other_elements_keep_what_the_instruction_gives():
    text = """
    @nki.jit
    def roots(x):
        tile = load(x)
        nisa.activation(dst=tile, op=nl.sqrt, data=tile)
        return store(tile)


    x = np.array([[4.0, 0.0, 9.0]], np.float32)
    assert np.array_equal(roots(x), [[2, np.nan, 3]], equal_nan=True)
    """
    lines = "\n".join(line[4:] for line in text.splitlines())

    assert run("roots.py", Example(lines), undefined_results="poison").error is None
