"""Which version a kernel is written for, decided by what it calls."""

from __future__ import annotations

import textwrap

import pytest

from nki_migrate.engine.version_detection import detect
from nki_migrate.facts.dialects import Dialect, file_dialect
from nki_migrate.index import FileIndex, Source

NEW = "import nki\nimport nki.language as nl\nimport nki.isa as nisa\n"
OLD = NEW.replace("import nki", "import neuronxcc.nki").replace("nki\n", "nki as nki\n", 1)
REPLACES = "nisa.nc_match_replace8(x, x, x, 0.0, dst_idx=out)"


def dialect(imports: str, body: str, header: str = "@nki.jit\ndef k(x, out):") -> Dialect:
    text = f"{imports}\n{header}\n{textwrap.indent(textwrap.dedent(body), '    ')}\n"
    index = FileIndex(Source(text))
    return detect(index.functions["k"], index)


@pytest.mark.parametrize(
    ("imports", "body", "name"),
    [
        (OLD, "y = nl.load(x)\nreturn y", "0.1"),
        (OLD, "y = nisa.activation(op=nl.exp, data=x)\nreturn y", "0.1"),
        (OLD, "y = nl.load(x)\nnl.store(out[0:4], y)", "0.1/2.20"),
        (OLD, "nisa.dma_copy(dst=out, src=x)\nreturn out", "0.1"),  # took dst= in 0.1 already
        # 2024 files that emulate 0.1 under the name nki
        (NEW, "y = nl.load(x, mask=x > 0)\nreturn y", "0.1"),
        (NEW, "i = nl.arange(4)\nreturn i", "0.1"),
        # early library kernels: destination first under the old namespace
        (OLD, "nisa.tensor_copy(dst=out, src=x)\nreturn out", "0.2"),
        (NEW, "nisa.tensor_copy(dst=out, src=x, dtype=nl.bfloat16)\nreturn out", "0.2"),
        (NEW, "if x is None:\n    nisa.tensor_copy(dst=out, src=x)\nreturn out", "0.2"),
        (NEW, "return nl.tile_size.total_available_sbuf_size", "0.3"),
        (NEW, "for i in nl.affine_range(4):\n    nisa.tensor_copy(out, x)\nreturn out", "0.7"),
        (NEW, "nisa.tensor_copy(dst=out, src=x)\nreturn out", "0.7"),
        (NEW, "nl.fori_loop(0, 4, x)\nreturn out", "0.7"),
        (NEW, "nisa.affine_select(out, x, x, x, x, x)\nreturn out", "0.7"),
        (NEW, "for i in nl.affine_range(4, unroll=2):\n    pass\nreturn out", "0.7"),
        (NEW, "for i in nl.dynamic_range(4):\n    nisa.tensor_copy(out, x)\nreturn out", "0.6"),
        (NEW, "s = nisa.scalar_load(x)\nnisa.scalar_store(out, s)\nreturn out", "0.7"),
        (NEW, "nl.fori_loop(0, 4, lambda i: nisa.memset(out, 0))\nnisa.memset(x, 0)", "0.7"),
        (NEW, "a = nl.arange(4)\nnisa.tensor_copy(dst=out, src=x)\nreturn out", "mixed"),
        (NEW, "nl.fori_loop(0, 4, x)\nreturn x is None", "0.7"),
    ],
)
def test_calls_tell_the_dialect(imports, body, name):
    assert dialect(imports, body).name == name


def test_a_dialect_names_the_line_that_gave_it_away():
    assert dialect(NEW, "y = x\ni = nl.arange(4)\nreturn i").why == "nl.arange (line 8)"


def test_a_mixed_kernel_starts_from_its_older_half():
    found = dialect(NEW, "a = nl.arange(4)\nnisa.tensor_copy(dst=out, src=x)\nreturn out")

    assert found.start == "0.1"
    assert "nl.arange" in found.why and "nisa.tensor_copy(dst=…)" in found.why


def test_migration_starts_where_the_oldest_deprecated_form_is():
    found = dialect(NEW, "for i in nl.affine_range(4):\n    nisa.tensor_copy(out, x)\nreturn out")

    assert (found.name, found.start) == ("0.7", "0.5")
    assert "nl.affine_range is deprecated" in found.why


def test_a_call_of_two_meanings_is_of_the_version_that_the_kernel_needs():
    assert dialect(NEW, f"{REPLACES}\nreturn out").name == "0.5"
    assert dialect(NEW, f"nl.fori_loop(0, 4, x)\n{REPLACES}\nreturn out").name == "0.7"


def test_a_call_that_is_as_common_in_later_versions_identifies_none():
    integers = "n = nl.ndarray((4, 4), dtype=nl.int32, buffer=nl.sbuf)\n"
    exact = "nisa.tensor_tensor(dst=n, data1=n, data2=n, op=nl.add)\nreturn out"
    transposed = "nisa.nc_transpose(out, x, engine=nisa.engine.vector)\nreturn out"

    assert dialect(NEW, integers + exact).name == "0.7"
    assert dialect(NEW, transposed).name == "0.7"


@pytest.mark.parametrize(("other", "name"), [("pass", "0.5"), ("nl.fori_loop(0, 4, x)", "0.7")])
def test_a_call_of_two_meanings_is_of_the_version_that_the_file_needs(other, name):
    header = f"def other():\n    {other}\n\n@nki.jit\ndef k(x, out):"

    assert dialect(NEW, REPLACES, header).name == name


def test_a_file_has_the_dialect_of_its_kernels():
    assert file_dialect(["0.1", "0.1"]) == "0.1"
    assert file_dialect(["0.1", "unknown"]) == "0.1"
    assert file_dialect(["0.1", "0.6"]) == "mixed"
    assert file_dialect([]) == "unknown"
