"""The index: names, device functions, launches."""

import ast
import textwrap

from neuroncore.findings import Edit
from nki_migrate.index import FileIndex, Source, apply_edits


def index(text: str) -> FileIndex:
    return FileIndex(Source(textwrap.dedent(text)))


def test_names_resolve_through_every_kind_of_import():
    found = index("""
        import neuronxcc.nki as a
        from neuronxcc import nki as b
        from neuronxcc.nki import language as c
        def f():
            from neuronxcc.nki.isa import nc_matmul as d
        try:
            import nki.language as e
        except ImportError:
            import neuronxcc.nki.language as e
        a.jit, b.language.load, c.store, d, e.exp, a.isa.iota
        """)
    (names,) = [n for n in found.nodes if isinstance(n, ast.Tuple)]

    assert [found.canonical(n) for n in names.elts] == [
        "nki.jit",
        "nl.load",
        "nl.store",
        "nisa.nc_matmul",
        "nl.exp",
        "nisa.iota",
    ]


def test_device_functions_are_those_reached_from_kernels():
    found = index("""
        import neuronxcc.nki as nki
        import neuronxcc.nki.language as nl
        def helper(t): return other(t)
        def other(t): return t
        def host(a): return kernel(a)
        @nki.jit
        def kernel(x): return helper(x)
        def orphan(x): return nl.load(x)
        """)

    assert list(found.functions) == ["helper", "other", "kernel", "orphan"]
    assert found.functions["kernel"].entry
    assert not found.functions["helper"].entry


def test_what_makes_a_decorated_kernel_is_host_code():
    found = index("""
        import neuronxcc.nki.language as nl
        def host(a):
            @some.trace(level=1)
            def kernel(x): return nl.load(x)
            return kernel[a.grid](a)
        def outer(x):
            def inner(y): return nl.load(y)
            return inner(x)
        """)

    assert list(found.functions) == ["kernel", "outer", "inner"]


def test_launches_carry_grid_and_arguments():
    found = index("""
        import neuronxcc.nki as nki
        def kernel(x): return x
        fast = nki.jit(kernel)
        def host(a):
            return fast[a.shape[0] // 128, 4](a)
        """)

    (launch,) = found.launches
    assert launch.host is not None
    assert (launch.kernel, len(launch.grid), launch.host.name) == ("kernel", 2, "host")


def test_spans_count_characters_not_bytes():
    source = Source('s = "ü"; name = 1\n')
    name = next(n for n in ast.walk(source.tree) if isinstance(n, ast.Name) and n.id == "name")

    assert source.segment(name) == "name"
    assert apply_edits(source, [Edit(*source.span(name), "other")]) == 's = "ü"; other = 1\n'


def test_form_feeds_do_not_end_lines():
    source = Source("a = 1\n\x0c\nb = 2\n")

    assert source.segment(source.tree.body[1]) == "b = 2"
