"""Kernels with `try`, `with` and `match` run, before and after, to the same numbers."""

from tools.nki_migrate.tests.command_line import run

KERNEL = """
import contextlib

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

@nki.jit
def kernel(x):
    n, p, f = x.shape
    out = nl.ndarray((n, p, f), dtype=x.dtype, buffer=nl.shared_hbm)
    try:
        first = nl.load(x[0])
    finally:
        pass
    with contextlib.nullcontext():
        nl.store(out[0], nl.exp(first))
    match n:
        case 2:
            nl.store(out[1], nl.square(nl.load(x[1])))
    return out
"""
CASES = """
schema = "nki-cases/1"
[[case]]
file = "k.py"
kernel = "kernel"
[[case.arg]]
name = "x"
dtype = "float32"
shape = [2, 32, 16]
"""


def test_statements_in_every_suite_compute_what_they_did(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text(KERNEL)
    (tmp_path / "cases.toml").write_text(CASES)

    result = run("fix", "--verify", "k.py")

    # with manual items the table precedes the details and ends the report
    (row,) = {r for r in result.stdout.splitlines() if "(exact)" in r}
    assert row.split()[-1] == "yes"
    assert "nl.load" not in (tmp_path / "k.py").read_text()
