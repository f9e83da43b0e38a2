"""`verify` runs old and new kernel on inputs that show what changed between their versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from nki_migrate.cli.main import main

KERNEL = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def places(x, v):
    out = nl.ndarray((4, 8), dtype=nl.uint32, buffer=nl.shared_hbm)
    data = nl.ndarray((4, 64), dtype=nl.float32, buffer=nl.sbuf)
    vals = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.sbuf)
    found = nl.ndarray((4, 8), dtype=nl.uint32, buffer=nl.sbuf)
    nisa.dma_copy(dst=data, src=x)
    nisa.dma_copy(dst=vals, src=v)
    nisa.INSTRUCTION
    nisa.dma_copy(dst=out, src=found)
    return out
"""
CASES = """\
schema = "nki-cases/1"
[[case]]
file = "old.py"
kernel = "places"
[[case.arg]]
name = "x"
dtype = "float32"
shape = [4, 64]
[[case.arg]]
name = "v"
dtype = "float32"
shape = [4, 8]
"""


def verified(folder: Path, instruction: str, capsys: pytest.CaptureFixture[str]) -> str:
    for name in ("old", "new"):
        text = KERNEL.replace("INSTRUCTION", instruction)
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    (folder / "cases.toml").write_text(CASES, encoding="utf-8")
    files = [str(folder / "old.py"), str(folder / "new.py")]
    code = main(["verify", *files, "--entry", "places", "--from", "0.5", "--to", "0.6"])
    return f"{code}\n{capsys.readouterr().out}"


def test_a_change_that_random_inputs_hide_is_a_difference(tmp_path, capsys):
    replacing = "nc_match_replace8(data, data, vals, 0.0, dst_idx=found)"

    said = verified(tmp_path, replacing, capsys)

    assert said.startswith("1\n")
    assert "inputs of fill 'ties', as nisa.nc_match_replace8 changed in 0.6" in said
    assert "differs from the old kernel" in said


def test_a_call_of_one_meaning_runs_on_the_inputs_of_the_case(tmp_path, capsys):
    said = verified(tmp_path, "nc_find_index8(found, data, vals)", capsys)

    assert said.startswith("0\n")
