"""Files whose names are unclear are left alone and said to be; they never look migrated."""

from __future__ import annotations

import pytest
from tools.nki_migrate.tests.command_line import run

OLD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def double(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nl.store(out, tile)
    return out
"""
STAR = OLD.replace("import neuronxcc.nki.language as nl", "from neuronxcc.nki.language import *")
IMPORT = "import neuronxcc.nki.language as nl\n"


def before_kernel(lines: str) -> str:
    return OLD.replace("\n\n\n@", f"\n{lines}\n\n\n@")


OTHER = "`nisa` is something else here than nki.isa"
UNCLEAR = {
    "star": (STAR.replace("nl.", ""), "`import *` hides which names come from"),
    "module": (before_kernel("L = nl\nM = L").replace("= nl.lo", "= M.lo"), "`L`"),
    "function": (before_kernel("get = nl.load").replace("nl.load(", "get("), "`get`"),
    "parameter": (OLD.replace("(x):", "(x, nisa=1):"), OTHER),
    "local": (OLD.replace("    return", "    nisa = 1\n    return"), OTHER),
    "import": (OLD.replace(IMPORT, IMPORT + "import numpy as nisa\n"), OTHER),
    "function-name": (OLD + "\n\ndef nisa():\n    pass\n", OTHER),
}


@pytest.mark.parametrize(("text", "message"), UNCLEAR.values(), ids=UNCLEAR)
def test_an_unclear_file_is_left_as_it_is_and_not_called_complete(
    tmp_path, monkeypatch, text, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text(text)

    result = run("fix", "k.py")

    assert result.exit_code == 1
    assert (tmp_path / "k.py").read_text() == text
    assert "NKI0005 [manual]" in result.stdout and message in result.stdout
    assert "\ncomplete (" not in result.stdout


FALLBACK = """\
try:
    import neuronxcc.nki.isa as nisa
except ImportError:
    nisa = None
"""
CLEAR = {
    "dtype": before_kernel("F = nl.float32"),
    "fallback": FALLBACK + OLD,
    "host": OLD + "\n\ndef host(nisa):\n    nl = nisa\n    return nl\n",
    "attribute": OLD.replace("    return", "    x.nisa = 1\n    return"),
}


@pytest.mark.parametrize("text", CLEAR.values(), ids=CLEAR)
def test_names_that_are_clear_stop_nothing(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text(text)

    result = run("fix", "k.py")

    assert "NKI0005" not in result.stdout
    assert "nisa.dma_copy(dst=tile, src=x)" in (tmp_path / "k.py").read_text()


def test_a_file_of_a_later_version_is_not_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text(OLD.replace("neuronxcc.", "").replace("(x):", "(x, nisa=1):"))

    assert "NKI0005" not in run("check", "k.py", "--from", "0.3").stdout
