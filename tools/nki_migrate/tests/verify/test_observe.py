"""`--cases` and `--facts` from the command line: the old kernel runs, and its facts are used."""

from importlib.util import find_spec

import pytest
from tools.nki_migrate.tests.command_line import run

from nki_migrate.cli import runs
from nki_migrate.verify.process import Children

KERNEL = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


def load(x):
    return nl.load(x), 0


@nki.jit
def add(x, y):
    a, _ = load(x)
    b, _ = load(y)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.add(a, b))
    return out
"""
CASES = """\
schema = "nki-cases/1"
[[case]]
file = "add.py"
kernel = "add"
reference = "references.py:add"
[[case.arg]]
name = "x"
dtype = "float32"
shape = [128, 64]
[[case.arg]]
name = "y"
dtype = "float32"
shape = [128, 64]
[[case.more]]
x = [64, 32]
y = [64, 32]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)
    (tmp_path / "add.py").write_text(KERNEL)
    (tmp_path / "cases.toml").write_text(CASES)
    (tmp_path / "references.py").write_text("def add(x, y):\n    return x + y\n")
    return tmp_path


def test_what_a_case_shows_is_used_and_named(folder):
    result = run("diff", "add.py", "--cases", "cases.toml", "-v")

    assert "TODO" not in result.stdout
    assert "because: observed in 2 runs: `a` has 2 dimensions" in result.stderr


def test_check_alone_runs_no_user_code(folder):
    result = run("check", "add.py")

    assert "the shapes of `a` and `b` are not known" in result.stdout


def test_verify_observes_the_cases_that_it_runs(folder):
    result = run("fix", "add.py", "--verify")

    assert result.exit_code == 0, result.stdout + result.stderr
    assert "TODO" not in (folder / "add.py").read_text()


def test_a_kernel_that_stops_is_named_and_the_file_is_migrated_all_the_same(folder):
    (folder / "add.py").write_text(KERNEL.replace("    return out", "    raise ValueError('no')"))

    result = run("diff", "add.py", "--cases", "cases.toml")

    assert "add of add.py stopped while observed" in result.stderr
    assert "TODO" not in result.stdout


def test_a_run_that_is_rejected_something_shows_nothing_and_is_said(folder):
    path = folder / "notes.txt"
    (folder / "add.py").write_text(
        KERNEL.replace("    out = nl.nd", f"    open({str(path)!r}, 'w')\n    out = nl.nd")
    )

    result = run("diff", "add.py", "--cases", "cases.toml", "-v")

    assert not path.exists()
    said = (
        f"add of add.py stopped while observed: blocked: {folder}/add.py:13: writes {path} (open)"
    )
    assert said in " ".join(result.stderr.split())
    assert "observed" not in result.stdout


def test_the_table_is_the_first_and_the_last_of_what_is_printed(folder):
    brief = run("fix", "add.py", "--verify", "--output-dir", "new")
    verbose = run("fix", "add.py", "--verify", "--output-dir", "new", "-v", "--no-cache")

    assert (brief.exit_code, brief.stderr) == (0, "")
    assert "[safe]" not in brief.stdout
    *_, table = brief.stdout.rstrip().partition("\n\n")
    assert verbose.stdout.startswith(table) and verbose.stdout.rstrip().endswith(table)
    assert verbose.stdout.count("NKI1101 [safe]") == 1


def test_a_second_run_runs_no_kernel_unless_the_cache_is_off(folder, monkeypatch):
    command = ("fix", "add.py", "--verify", "--output-dir", "new")
    first = run(*command)
    with monkeypatch.context() as patch:
        patch.setattr(Children, "run", lambda *_: pytest.fail("a kernel was run"))
        again = run(*command)
    repeated = run(*command, "--no-cache")

    assert "unchanged since" in again.stdout
    assert repeated.stdout == first.stdout
    assert "unchanged since" not in first.stdout


@pytest.mark.parametrize(
    "command",
    [("fix", "add.py", "--verify"), ("verify", "add.py", "add.py", "--entry", "add")],
    ids=["fix", "verify"],
)
def test_without_the_languages_verification_names_the_extra(folder, monkeypatch, command):
    monkeypatch.setattr(runs, "find_spec", lambda name: None if "nki_" in name else find_spec(name))

    result = run(*command)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "nki_beta2: pip install 'nki-migrate[verify]'" in result.stderr
    assert (folder / "add.py").read_text() == KERNEL
