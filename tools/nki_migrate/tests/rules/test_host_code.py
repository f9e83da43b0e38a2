"""Imports, decorators, launches and harness calls: the 0.1 rules that look at host code."""

import textwrap

import pytest

from neuroncore.findings import Safety
from nki_migrate.engine.migration import migrate_source
from nki_migrate.settings.request import Request


def migrate(text: str, **options):
    return migrate_source(textwrap.dedent(text).lstrip("\n"), "k.py", Request(**options))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("import neuronxcc.nki as nki", "import nki"),
        ("import neuronxcc.nki as kernels", "import nki as kernels"),
        ("from neuronxcc import nki", "import nki"),
        ("from neuronxcc import nki as k", "import nki as k"),
        ("import neuronxcc.nki.language as nl", "import nki.language as nl"),
        ("import os, neuronxcc.nki.isa as nisa", "import os, nki.isa as nisa"),
        ("from neuronxcc.nki import language as nl", "from nki import language as nl"),
        ("from neuronxcc.nki.language import par_dim, affine_range",
         "from nki.language import affine_range"),
        ("from neuronxcc.nki.isa import (\n  nc_matmul, nc_transpose as t)",
         "from nki.isa import nc_matmul, nc_transpose as t"),
    ],
)  # fmt: skip
def test_import_comes_from_the_new_namespace(old, new):
    assert migrate(old + "\n").after == new + "\n"


def test_import_inside_a_kernel_is_rewritten_too():
    result = migrate("""
        import neuronxcc.nki as nki

        @nki.jit
        def kernel(x):
            import neuronxcc.nki.language as nl
            tile = nl.load(x[0:128, 0:512])
        """)

    assert "    import nki.language as nl\n" in result.after
    assert "neuronxcc" not in result.after


def test_import_with_a_fallback_keeps_its_shape():
    result = migrate("""
        try:
            import neuronxcc.nki.language as nl
        except ImportError:
            nl = None
        """)

    assert (
        result.after == "try:\n    import nki.language as nl\nexcept ImportError:\n    nl = None\n"
    )


def test_private_import_is_reported_and_stays():
    result = migrate("from neuronxcc.nki._private_kernels.mlp import mlp\n")

    (finding,) = result.findings
    assert (finding.rule, finding.safety) == ("NKI1107", Safety.MANUAL)
    assert "from neuronxcc.nki._private_kernels.mlp import mlp" in result.after
    assert result.after.startswith("# TODO(nki-migrate NKI1107): ")


HEADER = "import neuronxcc.nki as nki\nimport neuronxcc.nki.language as nl\n\n"


@pytest.mark.parametrize(
    ("decorator", "rule"),
    [
        ('@nki.jit(mode="simulation")', "NKI1113"),
        ("@nki.jit(debug_kernel=True)", "NKI1115"),
        ("@nki.baremetal", "NKI1116"),
        ("@nki.benchmark(warmup=5)", "NKI1116"),
    ],
)
def test_decorator_becomes_plain_jit(decorator, rule):
    result = migrate(f"{HEADER}{decorator}\ndef kernel(x):\n    return x\n")

    assert "\n@nki.jit\ndef kernel(x):" in result.after
    assert rule in {f.rule for f in result.findings}


def test_compiler_decorator_goes():
    decorators = "@nki.compiler.skip_middle_end_transformations\n@nki.jit\n"
    text = f"{HEADER}{decorators}def k(x):\n    return x\n"
    result = migrate(text)

    assert "skip_middle_end" not in result.after
    assert "NKI1114" in {f.rule for f in result.findings}


def test_helper_of_kernels_loses_its_decorator():
    text = HEADER + (
        '@nki.jit(mode="trace")\ndef helper(t):\n    return t\n\n'
        "@nki.jit\ndef kernel(x):\n    return helper(x)\n"
    )
    result = migrate(text)

    assert "\ndef helper(t):" in result.after.replace("import nki.language as nl\n\n", "\n")
    assert result.after.count("@nki.jit") == 1


def test_a_kernel_that_a_kernel_calls_too_is_one_that_calls_a_helper():
    text = HEADER + (
        "@nki.jit(kernel_return=False)\ndef inner(t, n: int = 2):\n    return t\n\n"
        "@nki.jit\ndef kernel(x):\n    return inner(x)\n\n"
        "print(inner(1))\n"
    )
    result = migrate(text)

    assert [f for f in result.findings if not f.applied] == []
    assert "@nki.jit\ndef inner(t, n=2):\n    return inner_body(t, n)\n\n\n" in result.after
    assert "\n\ndef inner_body(t, n: int = 2):\n    return t\n" in result.after
    assert "return inner_body(x)\n" in result.after
    assert result.after.endswith("print(inner(1))\n")


@pytest.mark.parametrize(
    ("parameters", "more"),
    [
        ("t, *rest", ""),
        ("t, *, n=2", ""),
        ("t", "inner = inner\n"),
        ("t", "inner_body = 3\n"),
        ("t", "def helper(inner):\n    return inner\n\n"),
    ],
)
def test_a_kernel_that_a_kernel_calls_too_is_left_where_a_helper_is_not_plain(parameters, more):
    text = HEADER + (
        f"@nki.jit\ndef inner({parameters}):\n    return t\n\n{more}"
        "@nki.jit\ndef kernel(x):\n    return inner(x)\n\n"
        "print(inner(1))\n"
    )
    left = [f for f in migrate(text).findings if not f.applied]

    assert "NKI1112" in {f.rule for f in left}
    assert any("nki.jit(inner)(…)" in f.message for f in left)


def test_harness_calls_are_rewritten_where_a_call_says_the_same():
    text = HEADER + (
        "@nki.jit\ndef kernel(x):\n    return x\n\n"
        "a = nki.baremetal(kernel)(x)\n"
        "b = nki.simulate_kernel(kernel, x, flag=True)\n"
        "c = nki.benchmark(warmup=5)(kernel)(x)\n"
    )
    result = migrate(text)

    assert "a = kernel(x)\n" in result.after
    assert "b = nki.simulate(kernel)(x, flag=True)\n" in result.after
    assert "c = nki.benchmark(warmup=5)(kernel)(x)\n" in result.after
    left = [f for f in result.findings if not f.applied]
    assert [f.rule for f in left] == ["NKI1116"]


def test_host_arrays_and_dtypes_are_not_touched():
    text = HEADER + "import numpy as np\n\nx = np.ones(3, dtype=np.float32).astype(np.int8)\n"

    assert "x = np.ones(3, dtype=np.float32).astype(np.int8)" in migrate(text).after
