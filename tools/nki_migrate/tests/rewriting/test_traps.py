"""What a purely syntactic rewrite gets wrong (the semantic traps of the rule catalogue)."""

import textwrap

import pytest

from nki_migrate.engine.migration import migrate_source
from nki_migrate.settings.request import Request

HEAD = """
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np

@nki.jit
def kernel(x):
"""


def lowered(body: str, **options) -> str:
    text = HEAD + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"
    after = migrate_source(text, "k.py", Request(target="0.2", **options)).after
    return textwrap.dedent(after.split("def kernel(x):\n")[1])


def test_t2_destination_is_allocated_inside_the_loop():
    result = lowered("""
        for i in nl.affine_range(4):
            tile = nl.load(x[0:128, 0:512])
        """)

    assert result.startswith("for i in nl.affine_range(4):\n    tile = nl.ndarray(")


def test_t3_old_tile_survives_while_it_has_another_name():
    result = lowered("""
        a = nl.load(x[0:128, 0:512])
        old = a
        a = nl.exp(a)
        """)

    assert "a_exp = nl.ndarray(" in result
    assert "nisa.activation(dst=a_exp, op=nl.exp, data=a)\na = a_exp" in result


def test_t3_outer_tile_is_not_overwritten_by_a_rebinding_in_a_loop():
    result = lowered("""
        a = nl.load(x[0:128, 0:512])
        for i in nl.affine_range(4):
            a = nl.exp(a)
        """)

    assert "dst=a," not in result.split("for i")[1]


def test_t4_assigned_product_does_not_accumulate_over_iterations():
    result = lowered("""
        a = nl.load(x[0:128, 0:128])
        p = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
        for i in nl.affine_range(4):
            p[...] = nisa.nc_matmul(a, a)
        """)

    inside = result.split("for i")[1]
    assert "product = nl.ndarray(" in inside
    assert "nisa.nc_matmul(dst=product," in inside


def test_t4_a_product_is_added_to_what_a_tile_was_given():
    result = lowered("""
        a = nl.load(x[0:128, 0:128])
        p = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
        p[...] = nl.copy(a)
        p[...] += nisa.nc_matmul(a, a)
        """)

    given, added = result.split("nisa.tensor_copy(dst=p, src=a)")
    assert "dst=p," not in given
    assert "nisa.nc_matmul(dst=p," not in added
    assert "nisa.tensor_tensor(dst=p, data1=p, " in added


def test_t4_zeros_are_given_to_a_sum_of_products():
    result = lowered("""
        a = nl.load(x[0:128, 0:128])
        p = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
        p[...] = 0.0
        p[...] += nisa.nc_matmul(a, a)
        """)

    assert "nisa.nc_matmul(dst=p," in result


def test_t4_zeros_stay_when_the_first_write_is_no_matmul():
    result = lowered("""
        p = nl.zeros((128, 128), dtype=nl.float32, buffer=nl.psum)
        p[...] = nl.load(x[0:128, 0:128])
        """)

    assert "nisa.memset(dst=p, value=0.0)" in result


def test_t5_consumers_of_a_masked_load_keep_its_bounds():
    result = lowered("""
        n, m = x.shape
        ip = nl.arange(128)[:, None]
        jf = nl.arange(m)[None, :]
        for i in nl.affine_range((n + 127) // 128):
            tile = nl.load(x[i * 128 + ip, jf], mask=(i * 128 + ip < n))
            largest = nl.max(tile, axis=1)
            double = tile + tile
        """)

    assert "dst=largest[0:tile_n, :]" in result
    assert "data1=tile[0:tile_n, :]" in result
    assert "data2=tile[0:tile_n, :]" in result


def test_t5_zeros_under_a_masked_load_keep_their_full_shape():
    result = lowered("""
        n, m = x.shape
        tile = nl.zeros((128, 512), dtype=x.dtype, buffer=nl.sbuf)
        ip = nl.arange(128)[:, None]
        jf = nl.arange(512)[None, :]
        tile[ip, jf] = nl.load(x[ip, jf], mask=(ip < n))
        total = nl.sum(tile, axis=1)
        """)

    assert "nisa.tensor_reduce(dst=total, op=nl.add, data=tile, axis=1)" in result


def test_count_that_may_be_zero_guards_the_instruction():
    result = lowered("""
        n, m = x.shape
        ip = nl.arange(128)[:, None]
        jf = nl.arange(512)[None, :]
        for i in nl.affine_range(8):
            tile = nl.load(x[i * 128 + ip, jf], mask=(i * 128 + ip < n))
        """)

    assert "if tile_n > 0:\n        nisa.dma_copy(" in result


def test_t6_axes_not_positions_decide_the_layout():
    result = lowered("""
        n, m = x.shape
        ip = nl.arange(128)[:, None]
        jf = nl.arange(64)[None, :]
        transposed = nl.load(x[jf, ip])
        """)

    assert "transposed = nl.ndarray((128, 64)," in result
    assert "x.ap(pattern=[[1, 128], [m, 64]], offset=0)" in result


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("nl.bfloat16", "nl.bfloat16", "nl.bfloat16"),
        ("nl.bfloat16", "nl.float16", "nl.float32"),
        ("nl.float32", "nl.bfloat16", "nl.float32"),
        ("nl.int32", "nl.float16", "nl.float16"),
        ("nl.int8", "nl.uint8", "nl.int16"),
    ],
)
def test_t8_temporaries_have_the_promoted_dtype(a, b, expected):
    result = lowered(f"""
        a = nl.load(x[0:128, 0:512], dtype={a})
        b = nl.load(x[0:128, 0:512], dtype={b})
        c = nl.add(a, b)
        """)

    assert f"c = nl.ndarray((128, 512), dtype={expected}, buffer=nl.sbuf)" in result


def test_t9_two_psum_operands_do_not_meet():
    result = lowered("""
        a = nl.load(x[0:128, 0:128])
        p, q = nisa.nc_matmul(a, a), nisa.nc_matmul(a, a)
        both = p + q
        """)

    assert "q_copy = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)" in result
    assert "data1=p, data2=q_copy" in result


def test_t10_column_operand_is_a_tensor_scalar_in_float32():
    result = lowered("""
        a = nl.load(x[0:128, 0:512], dtype=nl.bfloat16)
        b = nl.sum(a, axis=1)
        c = b - a
        """)

    assert "b_f32 = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)" in result
    assert "operand0=b_f32" in result
    assert "reverse0=True" in result


def test_t12_stored_psum_goes_through_sbuf():
    result = lowered("""
        out = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.shared_hbm)
        a = nl.load(x[0:128, 0:128])
        nl.store(out, value=nisa.nc_matmul(a, a))
        return out
        """)

    assert "nisa.tensor_copy(dst=out_tile_sbuf, src=out_tile)" in result
    assert "nisa.dma_copy(dst=out, src=out_tile_sbuf)" in result


def test_t14_pattern_offsets_count_from_the_base_tensor():
    result = lowered("""
        n, m = x.shape
        ip = nl.arange(128)[:, None, None]
        jf = nl.arange(4)[None, :, None]
        kf = nl.arange(8)[None, None, :]
        part = nl.load(x[128 + ip, 3 + jf * 16 + kf])
        """)

    assert "x.ap(pattern=[[m, 128], [16, 4], [1, 8]], offset=128 * m + 3)" in result


def test_t17_host_arrays_keep_their_dtypes():
    text = (
        HEAD
        + "    tile = nl.load(x[0:128, 0:512], dtype=np.float32)\n\n"
        + ("def host(a):\n    return a.astype(np.float32)\n")
    )
    after = migrate_source(text, "k.py", Request(target="0.2")).after

    assert "a.astype(np.float32)" in after
    assert "dtype=nl.float32" in after


def test_t19_sliced_blocks_are_folded():
    result = lowered("""
        tiles = nl.ndarray((4, nl.par_dim(128), 512), dtype=x.dtype, buffer=nl.sbuf)
        for i in nl.affine_range(4):
            tiles[i] = nl.load(x[i])
        first = nl.copy(tiles[0:2, 0:128, 0:512])
        """)

    assert "tiles = nl.ndarray((128, 4, 512), dtype=x.dtype, buffer=nl.sbuf)" in result
    assert "dst=tiles[:, i, :]" in result


def test_spelling_with_a_rebound_variable_is_rejected():
    result = lowered("""
        n = 4
        jf = n + nl.arange(512)[None, :]
        ip = nl.arange(128)[:, None]
        n = 8
        tile = nl.load(x[ip, jf])
        """)

    assert "x[0:128, 4:516]" in result
