"""Launch grids become loops (NKI1118, NKI1119)."""

import textwrap

import pytest

from nki_migrate.engine import migrate_source
from nki_migrate.request import Request

KERNEL = """
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

@nki.jit
def copy(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i = nl.program_id(0)
    tile = nl.load(x[i * 128:i * 128 + 128, 0:512])
    nl.store(out[i * 128:i * 128 + 128, 0:512], value=tile)
    return out

"""


def migrate(host: str, kernel: str = KERNEL):
    return migrate_source(kernel + textwrap.dedent(host), "k.py", Request())


def test_extent_of_a_host_variable_is_written_in_kernel_words():
    result = migrate("""
        def run(a):
            blocks = a.shape[0] // 128
            return copy[blocks](a)
        """)

    assert "    for i in range(x.shape[0] // 128):\n        tile = " in result.after
    assert "return copy(a)" in result.after
    assert "program_id" not in result.after
    assert result.kernels[0].complete


def test_unpacked_shape_of_an_argument_is_understood():
    result = migrate("""
        def run(a):
            rows, cols = a.shape
            return copy[rows // 128](x=a)
        """)

    assert "for i in range(x.shape[0] // 128):" in result.after


def test_foreign_extent_is_left_to_a_human():
    result = migrate("""
        def run(a, n):
            return copy[n](a)
        """)

    left = [f for f in result.findings if not f.applied]
    assert {f.rule for f in left} == {"NKI1118", "NKI1119"}
    assert "cannot be written in the kernel's parameters" in left[-1].message
    assert "copy[n](a)" in result.after


def test_launches_that_differ_are_left_to_a_human():
    result = migrate("""
        def run(a):
            copy[4](a)
            return copy[8](a)
        """)

    assert any("differ in their grids" in f.message for f in result.findings)


@pytest.mark.parametrize("axis", ["nl.spmd_dim(nl.nc(2), 2)", "nl.spmd_dim(2, nl.nc(2))",
                                  "nl.nc(2) * 2"])  # fmt: skip
def test_an_axis_over_cores_has_all_their_programs(axis):
    result = migrate(f"copy[{axis}](a)\n")

    assert "    for i in range(2 * 2):\n        tile = " in result.after


def test_core_count_stays():
    result = migrate("""
        def run(a):
            return copy[2](a)
        """)

    assert "copy[2](a)" in result.after
    assert "nl.program_id(0)" in result.after


def test_num_programs_is_the_extent():
    kernel = KERNEL.replace("    tile =", "    n = nl.num_programs(0)\n    tile =")
    result = migrate("copy[a.shape[0] // 128](a)\n", kernel)

    assert "n = (x.shape[0] // 128)" in result.after or "n = x.shape[0] // 128" in result.after
