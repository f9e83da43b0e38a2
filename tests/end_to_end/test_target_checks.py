"""A kernel with the right numbers is not verified while the target would not take it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent, indent

import pytest

HEAD = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n\n\n@nki.jit\ndef k(x):\n"
BODY = """
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.activation(dst=tile, op=nl.sin, data=tile)
    nisa.dma_copy(dst=out, src=tile)
    return out
"""
CASE = """
schema = "nki-cases/1"
[[case]]
file = "old.py"
kernel = "k"
[[case.arg]]
name = "x"
dtype = "float32"
shape = [4, 8]
scale = 1e-3
"""


def kernel(before: str = "", after: str = "") -> str:
    """The kernel with statements before its body and before its last line."""
    body = dedent(BODY).replace("return out", after + "return out")
    return HEAD + indent(before + body, "    ")


def verify(folder: Path, old: str, new: str, case: str = CASE) -> tuple[int, list[str]]:
    """`nki-migrate verify`: its exit code and the problems of its one row."""
    for name, text in {"old.py": old, "new.py": new, "cases.toml": case}.items():
        (folder / name).write_text(text)
    command = (sys.executable, "-m", "nki_migrate", "verify", "old.py", "new.py", "--entry", "k")
    versions = ("--from", "0.6", "--to", "0.6", "--output-format", "json")

    done = subprocess.run((*command, *versions), cwd=folder, capture_output=True, text=True)

    assert done.stdout, done.stderr
    (row,) = json.loads(done.stdout)
    assert row["against_old"]["max_error"] == 0
    return done.returncode, row["problems"]


def test_a_kernel_that_passes_them_is_verified(tmp_path):
    assert verify(tmp_path, kernel(), kernel()) == (0, [])


WIDE = "a = nl.ndarray((128, 40000), dtype=nl.float32, buffer=nl.sbuf)\n"
WIDE += "b = nl.ndarray((128, 40000), dtype=nl.float32, buffer=nl.sbuf)\n"
WIDE_USE = "".join(f"nisa.memset(dst={name}, value=0.0)\n" for name in ("a", "b", "a", "b"))


ALIASED = """
e = nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.sbuf)
nisa.memset(dst=e, value=0.0)
nisa.activation(
    dst=e, op=nl.exp, data=e, reduce_op=nl.add, reduce_res=e[:, 0:1],
    reduce_cmd=nisa.reduce_cmd.reset_reduce,
)
"""


@pytest.mark.parametrize(
    ("new", "says"),
    [
        (kernel(before="if False:\n    y = nl.load(x, mask=1)\n"), "new.py:9:24: subset[mask]: "),
        (kernel(before=WIDE, after=WIDE_USE), ": capacity"),
        (kernel(after=ALIASED.lstrip()), ": traps[HW40]"),
    ],
    ids=["subset", "capacity", "traps"],
)
def test_what_the_target_would_not_take_is_a_problem_with_its_line(tmp_path, new, says):
    code, problems = verify(tmp_path, kernel(), new)

    assert code == 1
    assert len(problems) == 1 and problems[0].startswith("new.py:") and says in problems[0]


def test_values_that_a_device_does_not_compute_are_a_problem(tmp_path):
    """Both kernels give sin(1000 x) here; a device has it within one turn only."""
    code, problems = verify(tmp_path, kernel(), kernel(), CASE.replace("1e-3", "1e3"))

    assert code == 1
    assert len(problems) == 1 and ": device" in problems[0] and "sin" in problems[0]


def test_a_warning_is_no_problem(tmp_path):
    """The parser reads `is None`, which the documents exclude from 0.3 on."""
    assert verify(tmp_path, kernel(), kernel(before="f = x is None\n")) == (0, [])


def test_the_old_kernel_need_not_pass_them(tmp_path):
    old = kernel(before="if False:\n    y = nl.load(x, mask=1)\n")

    assert verify(tmp_path, old, kernel()) == (0, [])
