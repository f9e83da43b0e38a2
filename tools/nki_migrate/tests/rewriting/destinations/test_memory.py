"""Addresses go, and with them what only counted them."""

from nki_migrate.engine.migration import migrate_source
from nki_migrate.settings.request import Request

HEAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.compiler as ncc
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
"""


def after(*lines, head=HEAD):
    text = head + "".join(f"    {line}\n" for line in lines)
    result = migrate_source(text, "k.py", Request())
    return result, result.after


def test_an_import_that_only_addresses_needed_goes():
    result, text = after(
        "t = nl.ndarray((128, 8), dtype=nl.float32, buffer=ncc.sbuf.mod_alloc(base_addr=0))"
    )

    assert "t = nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.sbuf)" in text
    assert "compiler" not in text
    assert result.kernels[0].complete


def test_a_counter_that_something_else_reads_stays():
    lines = (
        "at = 0",
        "t = nl.ndarray((128, 8), dtype=nl.float32, buffer=ncc.sbuf.mod_alloc(base_addr=at))",
        "at += 32",
    )

    assert "at = 0" not in after(*lines)[1]
    assert "at += 32" in after(*lines, "print(at)")[1]


def test_a_counter_that_device_code_makes_stays():
    _, text = after(
        "at = helper(x)",
        "t = nl.ndarray((128, 8), dtype=nl.float32, buffer=ncc.sbuf.mod_alloc(base_addr=at))",
        head="import neuronxcc.nki.language as nl\n\n\ndef helper(x):\n    nl.load(x)\n\n\n" + HEAD,
    )

    assert "at = helper(x)" in text


def test_blocks_with_one_tile_share_it():
    _, text = after(
        "t = nl.ndarray((4, nl.par_dim(128), 8), dtype=nl.float32,",
        "               buffer=ncc.psum.mod_alloc(base_bank=0))",
    )

    assert "t.append(t_buffers[0])" in text


def test_blocks_with_a_tile_each_are_a_plain_list():
    _, text = after(
        "t = nl.ndarray((4, nl.par_dim(128), 8), dtype=nl.float32,",
        "               buffer=ncc.psum.mod_alloc(base_bank=0, num_bank_tiles=(4,)))",
    )

    assert "buffers" not in text
    assert "t.append(nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.psum))" in text


def test_tiles_counted_in_two_directions_are_left():
    result, _ = after(
        "t = nl.ndarray((4, nl.par_dim(32), 8), dtype=nl.float32, buffer=ncc.sbuf.mod_alloc(",
        "    base_addr=0, num_par_tiles=(2,), num_free_tiles=(2,)))",
    )

    assert not result.kernels[0].complete


def test_a_call_over_several_lines_keeps_its_columns():
    _, text = after(
        "for i in nl.affine_range(2):",
        "    t = nl.ndarray(",
        "        (nl.par_dim(128), 8), dtype=nl.float32, buffer=nl.psum",
        "    )",
    )

    assert (
        "        t = nl.ndarray(\n            (128, 8), dtype=nl.float32, buffer=nl.psum\n        )"
        in text
    )


def test_a_grid_goes_whose_unused_axis_has_no_name_beside_a_list_of_tiles():
    _, text = after(
        "p, _ = nl.mgrid[0:128, 0:1]",
        "out = nl.ndarray((4, 128, 1), dtype=nl.float32, buffer=nl.shared_hbm)",
        "t = nl.ndarray((4, nl.par_dim(128), 1), dtype=nl.float32, buffer=nl.sbuf)",
        "for i in nl.affine_range(4):",
        "    t[i, p, 0] = 1.0",
        "for i in nl.affine_range(4):",
        "    nl.store(out[i, p, 0], t[i, p, 0])",
    )

    assert "for _ in range(4)" in text
    assert "mgrid" not in text
