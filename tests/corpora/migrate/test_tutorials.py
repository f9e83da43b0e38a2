"""Kernels of other projects run under beta1, migrate to 0.7, run there, and verify."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.corpora.migrate.tutorials import (
    BEFORE,
    BEFORE_LAUNCH,
    Layout,
    Tried,
    lay_down,
    lay_out,
    markdown,
    migrate,
    together,
    tried,
)

CORPUS = os.environ.get("NKI_CORPUS")
TUTORIALS = "src/nki_samples/tutorials"
WHOLE = (
    f"{TUTORIALS}/tensor_addition/tensor_addition_nki_kernels.py",
    f"{TUTORIALS}/tensor_addition/spmd_tensor_addition_nki_kernels.py",
    f"{TUTORIALS}/transpose2d/transpose2d_nki_kernels.py",
)
NAMES = [Path(path).stem for path in WHOLE]


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    if not CORPUS:
        pytest.skip("NKI_CORPUS is not set: it names a folder with a clone of nki-samples")
    return lay_out(Path(CORPUS), tmp_path_factory.mktemp("samples"))


@pytest.fixture(scope="module")
def migrated(layout: Layout) -> list[Tried]:
    """The three files are in `new` afterwards."""
    return tried(migrate(layout, paths=WHOLE))


@pytest.mark.parametrize("path", WHOLE, ids=NAMES)
def test_a_tutorial_checks_itself_under_beta1(layout, path):
    done = layout.run("-m", "nki_runtime", "--backend", "beta1", f"old/{path}")

    assert done.returncode == 0, done.stderr
    assert "NKI and NumPy match" in done.stdout


def test_the_tutorials_are_converted_and_verified(migrated):
    assert [(line.path, line.word, line.says) for line in migrated] == [
        (path, "verified", "") for path in sorted(WHOLE)
    ]


@pytest.mark.parametrize("path", WHOLE, ids=NAMES)
def test_a_migrated_tutorial_checks_itself_under_0_7(layout, migrated, path):
    (written,) = (layout.folder / "new").rglob(Path(path).name)

    done = layout.run("-m", "nki_runtime", "--backend", "beta2", "--nki", "0.7", str(written))

    assert done.returncode == 0, done.stderr
    assert "NKI and NumPy match" in done.stdout


# -- what needs no clone --------------------------------------------------------------------------

FINDING = {"rule": "NKI1172", "kernel": "k", "applied": False, "safety": "manual", "message": "no"}
FILE = {
    "path": "old/a.py",
    "kernels": [{"name": "k", "complete": False}, {"name": "part", "complete": True}],
    "findings": [FINDING, FINDING | {"kernel": None}],
}


def report(**verdict: object) -> dict[str, object]:
    return {"files": [FILE], "verify": [{"file": "old/a.py", "kernel": "k", **verdict}]}


def test_a_table_names_the_rules_that_leave_something_to_do():
    lines = tried(report(equal=False, problems=["new kernel failed: a.py:3"]))

    assert lines == [
        Tried("a.py", "k", "manual", "NKI1172 ×1: no; new kernel failed: a.py:3"),
        Tried("a.py", "part", "converted", "no case of its own"),
    ]
    assert markdown(lines).startswith("2 kernels: 1 manual, 1 converted.\n")


def test_what_unsafe_edits_verify_is_said():
    safe, unsafe = report(equal=False, problems=["differs"]), report(equal=True, problems=[])

    assert together(tried(safe), tried(unsafe))[0].word == "verified with --unsafe-fixes"


def test_a_module_is_also_tried_up_to_its_direct_allocation(tmp_path):
    """`nki.compiler` at its top stops all its kernels once they are migrated."""
    source = b"import nki\n@nki.jit\ndef f(): pass\nmod = nki.compiler.sbuf.mod_alloc\n"

    lay_down(tmp_path / "a.py", source)

    assert (tmp_path / "a.py").read_bytes() == source
    assert (tmp_path / f"a{BEFORE}.py").read_bytes() == b"".join(source.splitlines(True)[:3])


def test_a_module_is_also_tried_up_to_a_launch_at_its_top(tmp_path):
    """An import would run it in every case."""
    source = b"import nki\n@nki.jit\ndef f(x): pass\nx = 1\ny = f[2](x)\n"

    lay_down(tmp_path / "a.py", source)

    assert (tmp_path / f"a{BEFORE_LAUNCH}.py").read_bytes() == b"".join(source.splitlines(True)[:4])


def test_where_the_old_kernel_does_not_run_the_reference_decides():
    """A difference to nothing is none; what a check says of the new kernel is said."""
    problems = ["old kernel failed: a.py:3", "a.py (migrated):7:3: capacity: too much"]
    equal, other = {"why": ""}, {"why": "2 of 3 elements differ"}

    (line, _) = tried(report(equal=False, problems=problems, against_reference=equal))
    (wrong, _) = tried(report(equal=False, problems=problems, against_reference=other))

    assert line.word == "not under beta1"
    assert line.says.startswith("equals the reference; NKI1172 ×1: no; line 7: capacity")
    assert wrong.says.startswith("does not equal the reference; ")
