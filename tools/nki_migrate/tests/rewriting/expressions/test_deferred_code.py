"""Code that may run later, often or never; what is left of 0.1; kernels that stay."""

import textwrap

import pytest

from nki_migrate.engine.migration import migrate_source
from nki_migrate.engine.processing import Task, process
from nki_migrate.settings.request import Request

HEAD = """
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

"""
KERNEL = """
@nki.jit{ignore}
def {name}(x, flag=True):
    n, p, f = x.shape
    out = nl.ndarray((p, f), dtype=nl.float32, buffer=nl.shared_hbm)
{body}
    return out
"""


def kernel(body: str, name: str = "kernel", ignore: str = "") -> str:
    indented = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    return KERNEL.format(name=name, body=indented, ignore=ignore)


def migrated(text: str, *, self_check: bool = False, **options):
    result = process(Task("k.py", (HEAD + text).encode(), Request(**options), self_check))
    assert result.error is None
    return result


def complete(result) -> dict[str, bool]:
    return {k.name: k.complete for k in result.kernels}


SCOPED = {
    "comprehension": "tiles = [nl.load(x[i]) for i in range(n) if flag]",
    "lambda": "read = lambda i: nl.load(x[i])",
    "conditional": "use(nl.load(x[0]) if flag else None)",
    "and": "flag and nl.store(out, nl.load(x[0]))",
    "while": "while use(nl.load(x[0])):\n    pass",
    "elif": "if flag:\n    pass\nelif use(nl.load(x[0])):\n    pass",
    "walrus": "use(tile := nl.load(x[0]))",
    "with": "with use(nl.load(x[0])):\n    pass",
}


@pytest.mark.parametrize("body", SCOPED.values(), ids=list(SCOPED))
def test_nothing_is_put_in_front_of_code_that_may_not_run(body):
    result = migrated(kernel(body))

    assert "nisa." not in result.after
    assert "# TODO(nki-migrate NKI1254): device code in" in result.after
    assert complete(result) == {"kernel": False}


@pytest.mark.parametrize("body", SCOPED.values(), ids=list(SCOPED))
def test_running_again_changes_nothing(body):
    once = migrated(kernel(body)).after

    assert process(Task("k.py", once.encode(), Request())).after == once


SUITES = {
    "try": "try:\n    tile = nl.load(x[0])\nexcept ValueError:\n    raise\nnl.store(out, tile)",
    "finally": "try:\n    pass\nfinally:\n    nl.store(out, nl.load(x[0]))",
    "handler": "try:\n    pass\nexcept ValueError:\n    nl.store(out, nl.load(x[0]))",
    "with": "with use() as u:\n    nl.store(out, nl.load(x[0]))",
    "match": "match n:\n    case 1:\n        nl.store(out, nl.load(x[0]))",
    "while-else": "while flag:\n    pass\nelse:\n    nl.store(out, nl.load(x[0]))",
}


@pytest.mark.parametrize("body", SUITES.values(), ids=list(SUITES))
def test_every_suite_of_a_statement_is_lowered(body):
    result = migrated(kernel(body))

    assert "nl.load" not in result.after and "nl.store" not in result.after
    left = {f.rule for f in result.findings if not f.applied}
    assert left <= {"NKI1256"}  # the compiler does not read every suite


def test_todo_of_one_of_two_statements_in_a_line_stands_above_it():
    result = migrated(kernel("t = nl.load(x[0]); u = nl.rms_norm(t, axis=1)"))
    lines = [line.strip() for line in result.after.splitlines()]

    assert lines[lines.index("u = nl.rms_norm(t, axis=1)") - 1].startswith(
        "# TODO(nki-migrate NKI1229)"
    )
    assert process(Task("k.py", result.after.encode(), Request())).after == result.after


# -- what is left of 0.1


def test_call_in_a_statement_without_a_rewrite_is_found_in_the_output():
    result = migrated(kernel("del (nl.load(x[0])).y"))

    assert "# TODO(nki-migrate NKI1133): a call of `nl.load` is left of 0.1" in result.after
    assert complete(result) == {"kernel": False}


def test_each_construct_that_is_left_keeps_its_own_todo_in_a_second_run():
    """What one finding says of a kernel does not answer for another."""
    body = "i = nl.arange(4)[:, None]\nj = nl.arange(4)[None, :]\ndel i.ndim, j.ndim"
    first = migrated(kernel(body))

    assert first.after.count("# TODO(nki-migrate NKI1150)") == 2
    assert process(Task("k.py", first.after.encode(), Request())).after == first.after


def test_kernel_with_an_ignored_line_is_not_complete():
    result = migrated(kernel("t = nl.load(x[0])  # nki-migrate: ignore"))

    assert "TODO" not in result.after
    assert complete(result) == {"kernel": False}


def test_deselected_rules_leave_the_kernel_incomplete():
    result = migrated(kernel("nl.store(out, nl.load(x[0]))"), ignore=("NKI1133", "NKI1134"))

    assert complete(result) == {"kernel": False}


# -- kernels that stay

BODY = "nl.store(out, nl.load(x[0]))"


def test_file_that_mixes_dialects_says_so_at_the_import():
    text = kernel(BODY, "old", ignore="  # nki-migrate: ignore") + kernel(BODY, "new")
    result = migrated(text)

    assert kernel(BODY, "old", ignore="  # nki-migrate: ignore") in result.after
    assert complete(result) == {"old": False, "new": True}
    assert [k.untouched for k in result.kernels] == [True, False]
    assert [f.rule for f in result.findings if not f.applied] == ["NKI0003", "NKI0003", "NKI0002"]
    assert "# TODO(nki-migrate NKI0003): this file mixes dialects: `nl`" in result.after
    assert process(Task("k.py", result.after.encode(), Request())).after == result.after


def test_file_whose_kernels_all_stay_keeps_its_imports():
    text = HEAD + "# nki-migrate: off\n" + kernel(BODY) + "# nki-migrate: on\n"
    result = process(Task("k.py", text.encode(), Request()))

    assert result.after == text
    assert complete(result) == {"kernel": False}


def test_kernel_that_fails_the_self_check_does_not_cost_the_others(monkeypatch):
    from nki_migrate.engine import migration, processing

    real = migration.migrate_source

    def restless(text, *rest):
        result = real(text, *rest)
        changed = result.after.replace("nisa.dma_copy(dst=first", "nisa.dma_copy(dst=other")
        again = "neuronxcc" not in text
        return processing.replace(result, after=changed) if again else result

    monkeypatch.setattr(migration, "migrate_source", restless)
    text = kernel("first = nl.load(x[0])", "bad") + kernel("second = nl.load(x[0])", "good")
    result = migrated(text, self_check=True)

    assert "first = nl.load(x[0])" in result.after
    assert "nisa.dma_copy(dst=second" in result.after
    assert ("NKI0004", "bad") in {(f.rule, f.kernel) for f in result.findings}
    assert complete(result) == {"bad": False, "good": True}


def test_old_and_new_migrate_the_same_through_the_engine_and_the_process():
    text = HEAD + kernel(BODY)

    assert migrate_source(text, "k.py", Request()).after == migrated(kernel(BODY)).after
