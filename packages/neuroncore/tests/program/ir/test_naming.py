"""Canonical names of programs."""

import re

import numpy as np

from neuroncore.program import emit, execute_program, parse_program, with_canonical_names

TEXT = """program("trn2", "0.7")
def twice(x: float32[256, 8]):
    out = buffer(float32[256, 8], shared_hbm)
    for row in range(2):
        tile = buffer(float32[128, 8], sbuf)
        for part in range(2):
            dma_copy(dst=tile[:, 4*part : 4*part + 4], src=x[128*row : 128*row + 128, 4*part : 4*part + 4])
        dma_copy(dst=out[128*row : 128*row + 128, :], src=tile[:, :])
    for row in range(2):
        dma_copy(dst=out[128*row : 128*row + 128, :], src=x[128*row : 128*row + 128, :])
    return out
"""  # noqa: E501
OTHERS = {"twice": "f", "x": "b1", "out": "b0", "tile": "a", "row": "i1", "part": "i0"}


def renamed(text):
    """Other names, among them canonical ones in another order; the second loop has a new one."""
    first, second = text.split("    for row in range(2):\n        dma_copy(dst=out")
    second = "    for k in range(2):\n        dma_copy(dst=out" + second.replace("row", "k")
    return re.sub(r"\w+", lambda word: OTHERS.get(word[0], word[0]), first + second)


def test_programs_that_differ_in_names_have_one_source():
    program, other = parse_program(TEXT), parse_program(renamed(TEXT))

    assert emit(program) != emit(other)
    assert emit(with_canonical_names(program)) == emit(with_canonical_names(other))


def test_programs_that_differ_in_a_number_have_two_sources():
    program, other = parse_program(TEXT), parse_program(TEXT.replace("4*part", "part"))

    assert emit(with_canonical_names(program)) != emit(with_canonical_names(other))


def test_canonical_names_change_no_value():
    x = np.arange(2048, dtype=np.float32).reshape(256, 8)

    (out,) = execute_program(with_canonical_names(parse_program(renamed(TEXT))), [x])

    assert (np.asarray(out) == x).all()
