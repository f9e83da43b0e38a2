"""Untouched code stays byte for byte, and migrating twice changes nothing."""

import ast
import textwrap

import pytest

from nki_migrate.engine.migration import migrate_source
from nki_migrate.engine.processing import Task, process
from nki_migrate.settings.request import Request

HEAD = """
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
"""


def migrated(text: str, **options) -> str:
    result = process(Task("kernel.py", text.encode(), Request(**options)))
    assert result.error is None
    return result.after


def source(body: str) -> str:
    return HEAD.lstrip("\n") + textwrap.dedent(body)


def test_host_code_is_untouched_byte_for_byte():
    host = textwrap.dedent("""
        def host( a,b ) :  # spacing of the author's own
            x = {  'k':1,
              "q" : '''two
            lines''' }
            return a.astype(np.float32)  ;


        if True: pass
        """)
    kernel = source("""
        @nki.jit
        def kernel(x):
            tile = nl.load(x[0:128, 0:512])
        """)

    assert host in migrated(kernel + host)


def test_windows_line_endings_stay():
    text = source("""
        @nki.jit
        def kernel(x):
            tile = nl.load(x[0:128, 0:512])
            tile = nl.exp(tile)
        """).replace("\n", "\r\n")

    result = migrated(text)

    assert "dma_copy" in result
    assert result.replace("\r\n", "").count("\n") == 0


def test_comments_outlive_the_statements_they_stand_at():
    result = migrated(
        source("""
        @nki.jit
        def kernel(x):
            # which rows
            ip = nl.arange(128)[:, None]
            jf = nl.arange(512)[None, :]
            # the tile
            tile = nl.load(
                x[ip, jf],  # all of it
            )  # done
            return None  # end
        """)
    )

    comments = ("# which rows", "# the tile", "# all of it", "# done", "# end")
    assert [result.count(c) for c in comments] == [1] * 5
    assert "arange" not in result


def test_statements_on_one_line_are_split():
    result = migrated(
        source("""
        @nki.jit
        def kernel(x):
            a = 1; tile = nl.load(x[0:128, 0:512]); b = 2
            for i in range(4): t = nl.load(x[0:128, 0:512])
        """)
    )

    ast.parse(result)
    assert "    a = 1\n    tile = nl.ndarray(" in result
    assert "    for i in range(4):\n        t = nl.ndarray(" in result


@pytest.mark.parametrize("indent", ["  ", "\t", "        "], ids=["two", "tab", "eight"])
def test_new_lines_take_the_indentation_of_the_file(indent):
    text = source("""
        @nki.jit
        def kernel(x):
            for i in nl.affine_range(4):
                tile = nl.load(x[0:128, 0:512], mask=(i < 2))
        """).replace("    ", indent)

    result = migrated(text, target="0.2")

    assert f"\n{indent * 2}if i < 2:\n{indent * 3}nisa.dma_copy(" in result


def test_non_ascii_text_before_a_kernel_does_not_shift_edits():
    text = source("""
        note = "σ²"; other = np.float32
        @nki.jit
        def kernel(x):
            "ñ"; tile = nl.load(x[0:128, 0:512], dtype=nl.float32)  # µ
        """)

    result = migrated(text)

    assert 'note = "σ²"; other = np.float32' in result
    assert "nisa.dma_copy(dst=tile, src=x[0:128, 0:512])  # µ" in result


def test_todo_is_not_repeated_and_goes_when_its_construct_does():
    text = source("""
        @nki.jit
        def kernel(x):
            ip = nl.arange(128)[:, None]
            jf = nl.arange(128)[None, :]
            tile = nl.load(x[ip, jf], mask=(ip >= jf))
        """)
    once = migrated(text)

    assert once.count("TODO(nki-migrate NKI1172)") == 1
    assert migrated(once) == once
    assert "TODO" not in migrated(once.replace(", mask=(ip >= jf)", ""))


# What the first run knew and its result does not show: how much of a tile is filled, which names
# are private, what a helper takes.
HALF_DONE = {
    "a mean of a tile that a mask fills in part": """
        @nki.jit
        def kernel(x):
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            ip, jf = nl.mgrid[0:128, 0:512]
            tile = nl.load(x[ip, jf], mask=jf < x.shape[1])
            mean = nl.mean(tile, axis=1)
            nl.store(out[0:128, 0:1], mean)
            return out
        """,
    "a private name under a TODO of its own": """
        from neuronxcc.nki._private.private_api import core_barrier

        @nki.jit
        def kernel(x):
            core_barrier(x, (0, 1))
            if core_barrier:
                tile = nl.load(x[0:128, 0:512])
        """,
    "a helper that is handed a tile across its partitions": """
        @nki.jit
        def kernel(x):
            tile = nl.load(x[0:128, 0:128])
            ip, jf = nl.mgrid[0:128, 0:128]
            library.fills(tile[jf, ip])
        """,
    "another rule is the first to complain": """
        @nki.jit
        def kernel(a, b):
            x = nl.load(a)
            y = nl.load(b)
            return nl.add(nl.exp(x), y)
        """,
}


@pytest.mark.parametrize("name", HALF_DONE)
def test_a_second_run_leaves_what_the_first_could_not_do(name):
    once = migrated(source(HALF_DONE[name]))

    assert "TODO(nki-migrate NKI1" in once
    assert migrated(once) == once


def test_a_second_run_lowers_nothing_that_the_first_left_without_a_todo():
    text = source("""
        @nki.jit
        def kernel(x):
            tile = nl.load(x[0:128, 0:512])
            odd = nl.mod(tile, 2)
        """)
    once = migrated(text) + "    more = nl.ndarray((128, 512), dtype=nl.float32)\n"

    assert migrated(once) == once


def test_code_that_stays_keeps_the_name_of_a_view():
    text = source("""
        @nki.jit
        def kernel(x):
            row = x[0:128, 0:512]
            library.takes(row)
        """)

    assert "library.takes(row)" in migrated(text)


def test_the_shape_of_a_reshape_is_never_lost():
    text = source("""
        @nki.jit
        def kernel(x):
            flat = x.reshape(shape=(128, 512))
            tile = nl.load(flat[0:128, 0:512])
        """)
    result = migrate_source(text, "kernel.py", Request())

    assert "flat = x.reshape((128, 512))" in result.after
    assert ("NKI1162", True) in {(f.rule, f.applied) for f in result.findings}


def test_temporaries_of_views_have_names():
    text = source("""
        @nki.jit
        def kernel(x, y):
            out = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.shared_hbm)
            row = nl.load(y.reshape((1, 512))).broadcast_to((128, 512))
            nl.store(out, row)
            return out
        """)

    ast.parse(migrated(text))


def test_all_or_nothing_leaves_an_incomplete_kernel_alone():
    text = source("""
        @nki.jit
        def kernel(x):
            tile = nl.load(x[0:128, 0:512])
            odd = nl.mod(tile, 2)
        """)

    assert "tile = nl.load(x[0:128, 0:512])" in migrated(text, all_or_nothing=True)
    assert "tile = nl.load" not in migrated(text)


def test_deselected_rule_leaves_its_statement_without_a_finding():
    text = source("""
        @nki.jit
        def kernel(x):
            tile = nl.load(x[0:128, 0:512])
        """)
    result = migrate_source(text, "kernel.py", Request(ignore=("NKI1133",)))

    assert "tile = nl.load(x[0:128, 0:512])" in result.after
    assert {f.rule for f in result.findings} == {"NKI1101", "NKI1102"}


def test_a_signature_never_changes():
    text = source("""
        @nki.jit
        def kernel(x, out, flag=True, *, size: int = 3):
            nl.store(out[0:128, 0:512], value=nl.load(x[0:128, 0:512]))
        """)

    assert "def kernel(x, out, flag=True, *, size: int = 3):" in migrated(text, target="0.2")


TWO_KERNELS = """
    @nki.jit
    def good(x):
        out = nl.ndarray((8, 16), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out[0:8, 0:16], nl.load(x[0:8, 0:16]))
        return out

    @nki.jit(mode="simulation")
    def bad(x):
        out = nl.ndarray((8, 16), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out[0:8, 0:16], nl.rms_norm(nl.load(x[0:8, 0:16]), axis=1))
        return out
"""


def test_all_or_nothing_leaves_decorators_alone_too_and_a_second_run_changes_nothing():
    before = source(TWO_KERNELS)

    once = migrated(before, all_or_nothing=True)

    assert once[once.index("@nki.jit(mode") :] == before[before.index("@nki.jit(mode") :]
    assert "nisa.dma_copy" in once
    assert migrated(once, all_or_nothing=True) == once


def test_all_or_nothing_leaves_a_file_alone_whose_only_kernel_is_incomplete():
    before = source(
        TWO_KERNELS[: TWO_KERNELS.index("    @nki.jit")]
        + TWO_KERNELS[TWO_KERNELS.index("    @nki.jit(mode") :]
    )

    assert migrated(before, all_or_nothing=True) == before
