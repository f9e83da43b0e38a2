"""Files that launch kernels of other files, whether they mention nki or not."""

import pytest
from tools.nki_migrate.tests.command_line import run

KERNEL = """
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

@nki.jit
def k(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i = nl.program_id(0) * 128
    nl.store(out[nl.ds(i, 128), :], nl.load(x[nl.ds(i, 128), :]))
    return out

def run(x):
    return k[x.shape[0] // 128](x)
"""


@pytest.mark.parametrize("launch", ["k[2](x)", "k[n](x)"])
def test_grid_of_a_kernel_that_loops_now_is_found_without_the_word_nki(
    tmp_path, monkeypatch, launch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernels.py").write_text(KERNEL)
    (tmp_path / "user.py").write_text(f"from kernels import k\n\ndef go(x, n):\n    {launch}\n")

    result = run("check", ".")

    assert "--> user.py:4:5" in result.stdout
    assert "`k` has to loop over this grid itself" in result.stdout


def test_unknown_rule_ids_name_their_neighbours(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernels.py").write_text(KERNEL)

    result = run("check", "--select", "NKI9999", ".")

    assert result.exit_code == 2
    assert "'NKI9999' is neither a rule nor the beginning of one" in result.stderr
