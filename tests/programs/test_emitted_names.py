"""Emitted source where a program's names are names that the source itself needs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuroncore.program import emit, execute_program, parse_program
from nki_runtime import use

NEEDED = ("nl", "nisa", "nki", "range", "float")
TEXT = """\
program("trn2", "0.6")
def PROGRAM(PARAMETER: float32[128, 64]):
    out = buffer(float32[128, 64], shared_hbm)
    for VARIABLE in range(2):
        BUFFER = buffer(float32[128, 32], sbuf)
        dma_copy(dst=BUFFER[:, :], src=PARAMETER[:, 32*VARIABLE : 32*VARIABLE + 32])
        tensor_scalar(dst=BUFFER[:, :], data=BUFFER[:, :], op0=minimum, operand0=inf)
        dma_copy(dst=out[:, 32*VARIABLE : 32*VARIABLE + 32], src=BUFFER[:, :])
    dma_copy(dst=out[:, 0:1], src=PARAMETER[:, 63:64])
    return out
"""
ROLES = {"PROGRAM": "p", "PARAMETER": "x", "VARIABLE": "i", "BUFFER": "t"}


def assert_runs_alike(folder: Path, names: dict[str, str]) -> str:
    """Run the program and its source; gives the source."""
    text = TEXT
    for role, name in names.items():
        text = text.replace(role, name)
    program = parse_program(text)
    x = np.arange(128 * 64, dtype=np.float32).reshape(128, 64)
    source = emit(program)
    path = folder / "emitted.py"
    path.write_text(source)
    namespace: dict[str, Any] = {}
    (function,) = re.findall(r"^def (\w+)", source, re.MULTILINE)
    with use("beta2", nki="0.6"):
        exec(compile(source, str(path), "exec"), namespace)
        given = namespace[function](x.copy())
    assert given.tobytes() == execute_program(program, [x.copy()])[0].tobytes()
    return source


@pytest.mark.parametrize("name", NEEDED)
@pytest.mark.parametrize("role", ROLES)
def test_a_name_that_the_source_needs_does_not_shadow_it(tmp_path, role, name):
    source = assert_runs_alike(tmp_path, {**ROLES, role: name})

    assert f"{name}_" in source


def test_a_new_name_is_not_one_that_the_program_has(tmp_path):
    source = assert_runs_alike(
        tmp_path, {"PROGRAM": "nl", "PARAMETER": "nl_", "VARIABLE": "range", "BUFFER": "range_"}
    )

    assert "def nl__(nl_):" in source
    assert "for range__ in range(2):" in source


def test_a_loop_variable_does_not_overwrite_the_buffer_of_its_name(tmp_path):
    assert "for x_ in range(2):" in assert_runs_alike(tmp_path, {**ROLES, "VARIABLE": "x"})
