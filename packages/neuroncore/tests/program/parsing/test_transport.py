"""A program passes from process to process as text, and keeps the lines of its kernel."""

from __future__ import annotations

import json

import pytest

from neuroncore.errors import LaunchError
from neuroncore.program import parse_program, walk
from neuroncore.program.parsing.transport import program_from_json, program_to_json

NESTED = """program("trn1", "0.6")
def nested(a: float32[512, 512]):
    out = buffer(float32[512, 512], shared_hbm)
    for i in range(2):
        for j in range(2):
            t = buffer(float32[128, 512], sbuf)
            dma_copy(dst=t[:, :], src=a[256*i + 128*j : 256*i + 128*j + 128, :], name="load")
            dma_copy(dst=out[256*i + 128*j : 256*i + 128*j + 128, :], src=t[:, :])
    return out
"""


def test_a_program_arrives_with_its_places():
    program = parse_program(NESTED, "kernel.py")

    arrived = program_from_json(program_to_json(program))

    assert arrived == program
    assert [s.origin for s in walk(arrived.body)] == [s.origin for s in walk(program.body)]
    assert [s.origin.line for s in walk(arrived.body) if s.origin] == [3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", json.dumps({"program": NESTED, "places": []})],
)
def test_another_text_is_rejected(text: str):
    with pytest.raises(LaunchError, match="not a program in JSON"):
        program_from_json(text)
