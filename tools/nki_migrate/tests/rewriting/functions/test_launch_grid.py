"""Launch grids become loops (NKI1118, NKI1119)."""

import textwrap

import pytest

from nki_migrate.cli.main import main
from nki_migrate.engine.migration import migrate_source
from nki_migrate.settings.request import Request

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


def test_a_launch_under_a_name_is_one():
    result = migrate("""
        def run(a):
            launch = copy[a.shape[0] // 128]
            return launch(a)
        """)

    assert "for i in range(x.shape[0] // 128):" in result.after
    assert "launch = copy\n" in result.after
    assert result.kernels[0].complete


def test_a_grid_of_what_is_rebound_before_the_launch_is_left():
    result = migrate("""
        def run(a):
            launch = copy[a.shape[0] // 128]
            a = padded(a)
            return launch(a)
        """)

    assert "launch = copy[a.shape[0] // 128]" in result.after
    assert not result.kernels[0].complete


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


@pytest.mark.parametrize(
    "host",
    [
        "blocks = a.shape[0] // 128\n    a = a.reshape(128, -1)",
        "blocks = a.shape[0] // 128\n    blocks *= 2",
        "blocks = a.shape[0] // 128\n    for blocks in (1, 2): pass",
        "a = a[:256]\n    blocks = a.shape[0] // 128\n    a = a[:128]",
        "blocks = blocks[:2]",
        "global blocks",
        "blocks = 0",
        "blocks = -1",
        "blocks = 0.5",
    ],
)
def test_a_grid_of_other_values_than_the_launch_sees_is_left_to_a_human(host):
    """Names that mean something else at the launch, and no number of programs."""
    result = migrate(f"blocks = blocks\ndef run(a):\n    {host}\n    return copy[blocks](a)\n")

    assert "range(" not in result.after.split("@nki.jit")[1].split("def run")[0]
    assert any(f.rule == "NKI1118" and not f.applied for f in result.findings)
    assert not result.kernels[0].complete


def test_a_modules_variable_is_not_the_launching_functions():
    result = migrate("""
        a = [0] * 512
        BLOCKS = len(a)

        def run(a):
            return copy[BLOCKS](a)
        """)

    assert any(f.rule == "NKI1118" and not f.applied for f in result.findings)


def test_a_modules_constant_may_stand_below_the_launch():
    result = migrate("""
        def run(a):
            return copy[BLOCKS](a)

        ROWS = 512
        BLOCKS = ROWS // 128
        """)

    assert "for i in range(512 // 128):" in result.after


def test_a_grid_in_a_variable_is_split():
    result = migrate("""
        def run(a):
            blocks = a.shape[0] // 128
            grid = (blocks,)
            return copy[grid](a)
        """)

    assert "for i in range(x.shape[0] // 128):" in result.after
    assert result.kernels[0].complete


COUNT = KERNEL.replace("value=tile", "value=nl.multiply(tile, {})")


@pytest.mark.parametrize(
    ("grid", "written", "wanted"),
    [
        ("a.shape[0] // 128", "8.0 / nl.num_programs(0)", "8.0 / (x.shape[0] // 128)"),
        ("2 * 2", "8 % nl.num_programs(0)", "8 % (2 * 2)"),
        ("3 + 1", "-nl.num_programs(0)", "-(3 + 1)"),
        ("4", "8.0 / nl.num_programs(0)", "8.0 / 4"),
    ],
)
def test_the_number_of_programs_is_one_operand(grid, written, wanted):
    result = migrate(f"def run(a):\n    return copy[{grid}](a)\n", COUNT.format(written))

    assert wanted in result.after
    assert result.kernels[0].complete


@pytest.mark.parametrize(
    "lines",
    ["y = y[:32]\n    x = y", "y = z\n    z = y\n    x = y", "y, z = z, y\n    x = y"],
    ids=["itself", "each-other", "swapped"],
)
def test_host_names_defined_by_themselves_are_unknown(lines):
    host = f"""
def host(y, z):
    {lines}
    return copy[y.shape[0] // 128](x)
"""
    result = migrate(host)

    assert any(f.rule == "NKI1118" and not f.applied for f in result.findings)
    assert host in result.after
    assert not result.kernels[0].complete


@pytest.mark.parametrize(
    "lines",
    ["K = K + 1", "A = K\nK = A", "K = A + 1\nA = B\nB = K", "A = A\nK = A"],
    ids=["itself", "each-other", "three", "behind"],
)
def test_constants_of_the_module_defined_by_themselves_are_unknown(lines):
    kernel = KERNEL.replace("@nki.jit", f"{lines}\n\n@nki.jit").replace(":512", ":K")

    assert ":K" in migrate("", kernel).after


def test_functions_that_call_each_other_are_followed_once():
    helpers = """
def even(n):
    return n == 0 or odd(n - 1)


def odd(n):
    return n != 0 and even(n - 1)

"""
    placed = """
    address = even(0)
    other = nl.ndarray((128, 512), dtype=x.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=address))
    i ="""
    kernel = KERNEL.replace("@nki.jit", f"import neuronxcc.nki.compiler as ncc\n{helpers}@nki.jit")
    result = migrate("", kernel.replace("\n    i =", placed))

    assert "other = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)" in result.after


TWO_FILES = {
    "kernels.py": """
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a):
    i = nl.program_id(0)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(out[i * 128:i * 128 + 128, 0:64], nl.load(a[i * 128:i * 128 + 128, 0:64]))
    return out
""",
    "launch.py": """
import neuronxcc.nki.language as nl


def run(module, a):
    grid = nl.spmd_dim(a.shape[0] // 256, nl.nc(2))
    return module.kernel[grid](a)
""",
}


def test_a_launch_of_an_attribute_is_one_of_the_only_kernel_of_its_name(tmp_path):
    for name, text in TWO_FILES.items():
        (tmp_path / name).write_text(text)

    main(["fix", "--isolated", "--quiet", str(tmp_path)])

    launch = (tmp_path / "launch.py").read_text()
    assert "return module.kernel(a)" in launch
    assert "grid = (a.shape[0] // 256) * 2" in launch
    assert "for i in range(a.shape[0] // 256 * 2):" in (tmp_path / "kernels.py").read_text()
