"""Old against new against the reference, in child processes, over a stand-in for the languages.

The stand-in is a `nki_runtime` whose kernels are plain NumPy functions: what is tested is how
children are run, limited and compared, not what a language computes.
"""

from __future__ import annotations

import os
import select
import subprocess
import textwrap
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from nki_migrate.verify import pair, process
from nki_migrate.verify.cases import read_cases
from nki_migrate.verify.job import backend_for
from nki_migrate.verify.pair import Pair, Side, Verdict, verify_pairs
from nki_migrate.verify.process import Children, Limits, no_progress
from nki_migrate.verify.store import Store
from nki_migrate.verify.table import Row, problems, render_table

RUNTIME = """
import contextlib, os, sys, types

class Kernel:
    def __init__(self, function, grid=()):
        self.function, self.grid = function, grid
    def __getitem__(self, grid):
        return Kernel(self.function, grid)
    def __call__(self, *args, **kw):
        sys.modules["nki"].grid = self.grid
        return self.function(*args, **kw)

@contextlib.contextmanager
def use(backend, nki=None, target=None, shadow=False, **options):
    module = types.ModuleType("nki")
    module.jit, module.backend, module.version, module.grid = Kernel, backend, nki, ()
    module.options = options
    sys.modules["nki"] = module
    yield
"""
CASE = """
schema = "nki-cases/1"
[[case]]
file = "k.py"
kernel = "k"
reference = "references.py:double"
rtol = 1e-6
[[case.arg]]
name = "x"
dtype = "float32"
shape = [4, 3]
[[case.more]]
x = [2, 2]
"""
OLD = "import nki\n\n@nki.jit\ndef k(x):\n    return x + x\n"


@pytest.fixture
def world(tmp_path, monkeypatch):
    (tmp_path / "runtime").mkdir()
    (tmp_path / "runtime/nki_runtime.py").write_text(RUNTIME)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "runtime"))
    monkeypatch.setattr(pair, "TARGET_CHECKS", ())  # the stand-in is not a machine
    (tmp_path / "cases.toml").write_text(CASE)
    (tmp_path / "references.py").write_text("def double(x):\n    return 2.0 * x\n")
    return tmp_path


def verdict(
    world: Path, new: str, old: str = OLD, store=None, progress=no_progress, **limits
) -> Verdict:
    for name, text in (("old", old), ("new", new)):
        (world / name).mkdir(exist_ok=True)
        (world / name / "k.py").write_text(textwrap.dedent(text))
    before, after = (
        Side(world / name / "k.py", f"{name}.py", (world / name,), backend_for(version, "trn2"))
        for name, version in (("old", "0.1"), ("new", "0.6"))
    )
    cases = read_cases(world / "cases.toml")
    pairs = [Pair(case, before, after) for case in cases]
    with Children(Limits(**limits)) as children:
        (found,) = verify_pairs(pairs, children, 2, store or Store(world / "cache"), progress)
    return found


def test_two_kernels_that_compute_the_same_are_equal(world):
    found = verdict(world, OLD.replace("x + x", "2 * x"))

    assert found.problems == ()
    assert found.against_old is not None and found.against_old.max_error == 0.0
    assert (found.variants, found.is_equal) == (2, True)


def test_the_options_of_a_case_are_in_force_for_both_kernels(world):
    text = CASE.replace("[[case.more]]", "[case.options]\ndynamic_turns = 3\n[[case.more]]")
    (world / "cases.toml").write_text(text)
    by_option = OLD.replace("x + x", "x * (nki.options['dynamic_turns'] - 1)")

    found = verdict(world, by_option, old=by_option)

    assert found.problems == ()
    assert (found.variants, found.is_equal) == (2, True)


def test_a_wrong_kernel_differs_from_both_and_says_where(world):
    found = verdict(world, OLD.replace("x + x", "x * 2.5"))

    assert not found.is_equal
    assert [p.split(" (")[0] for p in found.problems] == [
        "differs from the old kernel",
        "differs from the old kernel",
        "differs from the reference",
        "differs from the reference",
    ]
    assert "x=[4, 3], result 0" in found.problems[0]


def test_a_result_of_fewer_digits_differs_from_the_old_kernel(world):
    old = OLD.replace("x + x", "0 * x")

    found = verdict(world, old.replace("0 * x", "(0 * x).astype('float16')"), old)

    assert [problem.partition("): ")[2] for problem in found.problems[:2]] == [
        "dtype float16, expected float32",
        "dtype float16, expected float32",
    ]


def test_an_old_kernel_that_is_wrong_itself_is_said_to_be(world):
    found = verdict(world, OLD.replace("x + x", "x * 3"), old=OLD.replace("x + x", "x * 3"))

    assert any("old kernel itself differs from the reference" in p for p in found.problems)


def test_an_error_in_a_kernel_names_the_side_and_the_line(world):
    found = verdict(world, OLD.replace("return x + x", "raise ValueError('129 partitions')"))

    assert found.problems == ("new kernel failed: new.py:5: ValueError: 129 partitions",)


def test_a_child_that_ends_without_results_is_no_agreement(world):
    silent = OLD.replace("return x + x", "import os; os._exit(0)")

    found = verdict(world, silent)

    assert found.problems == (
        "new kernel failed: the process ended without giving all its results",
    )
    assert not found.is_equal


STARTS_ANOTHER = """
import nki, signal, subprocess, sys
from nki_migrate.verify.guard import Guard

@nki.jit
def k(x):
    Guard.__call__ = lambda *event: None
    code = "import signal; signal.alarm(600); signal.pause()"
    child = subprocess.Popen([sys.executable, "-c", code])
    open("{started}.part", "w").write(str(child.pid))
    __import__("os").rename("{started}.part", "{started}")
    signal.alarm(600)
    signal.pause()
"""
"""A kernel that removes the guard and starts a process of its own."""


def test_a_child_that_never_ends_is_stopped_with_all_it_started(world, monkeypatch):
    started = world / "started"
    monkeypatch.setattr(process, "FORKS", False)  # a forked child starts nothing
    monkeypatch.setattr(subprocess.Popen, "wait", times_out_with(started, subprocess.Popen.wait))

    found = verdict(world, STARTS_ANOTHER.format(started=started), seconds=3600)

    assert "new kernel failed: stopped after 3600 s; --timeout allows more" in found.problems
    assert ends(int(started.read_text()))


def times_out_with(file: Path, wait: Callable[..., object]) -> Callable[..., object]:
    """`wait` whose time is up when the file is there, however long that takes."""

    def wait_for_file(process, timeout=None):
        while timeout is not None:
            with suppress(subprocess.TimeoutExpired):
                return wait(process, 0.01)
            if file.exists():
                raise subprocess.TimeoutExpired("job", timeout)
        return wait(process)

    return wait_for_file


def ends(pid: int) -> bool:
    """Whether a process that was killed is gone; it would go on for 600 s by itself."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    return bool(select.select([handle], [], [], 60)[0])


def test_memory_is_limited(world):
    greedy = """
        import nki, numpy
        @nki.jit
        def k(x):
            return numpy.ones(1 << 30)
    """

    (problem,) = verdict(world, greedy, mebibytes=2048).problems

    assert "new.py:5: " in problem and "MemoryError" in problem


def test_a_child_that_dies_says_of_which_signal(world):
    crash = (
        "import nki, os, signal\n@nki.jit\ndef k(x):\n    os.kill(os.getpid(), signal.SIGSEGV)\n"
    )

    assert verdict(world, crash).problems == ("new kernel failed: the process died of SIGSEGV",)


def test_a_file_that_exits_when_it_is_loaded_is_a_failure(world):
    found = verdict(world, "import sys\nsys.exit(0)\n")

    assert found.problems == ("new kernel failed: new.py:2: SystemExit: 0",)


def test_the_main_block_of_a_kernel_file_does_not_run(world):
    guarded = OLD + "\nif __name__ == '__main__':\n    raise SystemExit(1)\n"

    assert verdict(world, guarded).is_equal


def test_nan_from_unwritten_memory_is_a_difference(world):
    found = verdict(world, OLD.replace("return x + x", "y = x + x; y[0] = float('nan'); return y"))

    assert not found.is_equal
    assert "got nan" in found.problems[0]


def test_the_old_kernel_is_launched_on_its_grid_and_the_new_one_plainly(world):
    (world / "cases.toml").write_text(CASE.replace("rtol", "grid = [4, 2]\nrtol"))
    old = OLD.replace("return", "assert nki.grid == (4, 2)\n    return")
    new = OLD.replace("return", "assert nki.grid == ()\n    return")

    assert verdict(world, new, old).problems == ()


def test_sides_run_under_the_version_they_are_written_for(world):
    old = OLD.replace("return", "assert nki.backend == 'beta1'\n    return")
    new = OLD.replace("return", "assert (nki.backend, nki.version) == ('beta2', '0.6')\n    return")

    assert verdict(world, new, old).problems == ()


def test_output_arguments_count_as_results_and_may_become_return_values(world):
    output = '[[case.arg]]\nname = "out"\ndtype = "float32"\nshape = [4, 3]\nrole = "output"\n'
    more = "[[case.more]]\nx = [2, 2]\n"
    (world / "cases.toml").write_text(CASE.replace(more, output))
    old = "import nki\n@nki.jit\ndef k(x, out):\n    out[...] = x + x\n"

    assert verdict(world, OLD, old).problems == ()


def test_a_kernel_that_returns_nothing_is_not_equal_to_one_that_does(world):
    found = verdict(world, "import nki\n@nki.jit\ndef k(x):\n    pass\n")

    assert "no result, expected 1 result" in found.problems[0]


def test_an_argument_that_a_kernel_does_not_take_is_named(world):
    (problem,) = verdict(world, "import nki\n@nki.jit\ndef k(y):\n    return y\n").problems

    assert "the case gives x, which is not a parameter" in problem


def test_children_leave_nothing_beside_the_kernels(world):
    verdict(world, OLD)

    assert [path.name for path in (world / "new").iterdir()] == ["k.py"]


WRITING = """
import nki

def note(path):
    try:
        open(path, "w")
    except OSError:
        pass

@nki.jit
def k(x):
    note("{path}")
    return x + x
"""


def test_a_kernel_that_writes_elsewhere_is_rejected_although_its_numbers_are_right(world):
    path = world / "notes.txt"

    found = verdict(world, WRITING.replace("{path}", str(path)))

    assert not path.exists()
    assert found.problems == (f"new kernel blocked: new.py:6: writes {path} (open)",)
    assert found.against_old is not None and found.against_old.is_equal
    assert (found.is_equal, found.blocked) == (False, True)
    assert render_table([Row(found)]).splitlines()[2].endswith("blocked")


def test_a_kernel_may_write_into_its_working_folder(world):
    assert verdict(world, WRITING.replace("{path}", "notes.txt")).is_equal


def test_a_rejection_that_ends_a_kernel_is_said_once(world):
    opening = OLD.replace("return", "__import__('socket').socket()\n    return")

    assert verdict(world, opening).problems == (
        "new kernel blocked: new.py:5: uses a socket (socket.__new__)",
    )


def test_a_reference_is_held_to_the_same(world):
    text = "import os\ndef double(x):\n    os.system('true')\n    return 2.0 * x\n"
    (world / "references.py").write_text(text)

    (problem,) = verdict(world, OLD).problems[:1]

    where = f"{world}/references.py:3"
    assert problem == f"reference blocked: {where}: starts a process (os.system b'true')"


def test_the_table_has_a_row_per_kernel_and_says_what_went_wrong(world):
    good, bad = verdict(world, OLD), verdict(world, OLD.replace("x + x", "x"))

    rows = [Row(good, 12, 0), Row(bad, 3, 1)]
    lines = render_table(rows).splitlines()

    assert lines[0].split("  ")[0] == "kernel" and lines[0].endswith("equal")
    assert lines[2].split() == ["k", "2", "12", "0", "0", "(exact)", "0", "(exact)", "yes"]
    assert lines[3].endswith("NO")
    assert problems(rows)[0].startswith("old.py: k: differs from the old kernel")


def with_helper(world: Path) -> str:
    """A kernel that computes what a module beside it says."""
    (world / "new").mkdir(exist_ok=True)
    (world / "new/factor.py").write_text("FACTOR = 2\n")
    return "import nki, factor\n\n@nki.jit\ndef k(x):\n    return factor.FACTOR * x\n"


def test_a_verdict_is_reused_while_nothing_has_changed(world):
    new = with_helper(world)
    first = verdict(world, new)

    again = verdict(world, new)

    assert (first.unchanged_since, again.unchanged_since) == (None, date.today().isoformat())
    assert again == replace(first, unchanged_since=again.unchanged_since)
    assert "yes, unchanged since 20" in render_table([Row(again)])


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("new/factor.py", "FACTOR = 3\n"),
        ("references.py", "def double(x):\n    return 3.0 * x\n"),
        ("cases.toml", CASE.replace("[2, 2]", "[2, 5]").replace("rtol = 1e-6", "rtol = 1e-9")),
    ],
)
def test_a_change_of_what_a_verdict_rests_on_runs_the_kernels_again(world, file, text):
    new = with_helper(world)
    verdict(world, new)
    (world / file).write_text(text)

    again = verdict(world, new)

    assert again.unchanged_since is None
    assert again.is_equal == (file == "cases.toml")


def test_a_changed_kernel_is_run_again(world):
    verdict(world, OLD)

    assert not verdict(world, OLD.replace("x + x", "x + 1")).is_equal


def test_a_verdict_that_is_not_equal_is_not_reused(world):
    wrong = OLD.replace("x + x", "x + 1")

    assert [verdict(world, wrong).unchanged_since for _ in range(2)] == [None, None]


def test_a_file_that_appears_beside_those_that_were_read_is_seen(world):
    absent = "try: from factor import F\nexcept ImportError: F = 2.0\ndef double(x): return F * x\n"
    (world / "references.py").write_text(absent)
    assert verdict(world, OLD).is_equal

    (world / "factor.py").write_text("F = 7.0\n")

    assert not verdict(world, OLD).is_equal


def test_a_run_without_the_cache_that_is_not_equal_forgets_the_verdict(world):
    assert verdict(world, OLD).is_equal
    (world / "references.py").write_text("def double(x):\n    return 3.0 * x\n")
    without = Store(world / "cache", reads=False)
    assert not verdict(world, OLD, store=without).is_equal

    assert [*(world / "cache").iterdir()] == []


def test_without_the_cache_the_kernels_run_again_and_are_stored(world):
    shown: list[str] = []
    without = Store(world / "cache", reads=False)
    for _ in range(2):
        assert verdict(world, OLD, store=without, progress=shown.append).unchanged_since is None

    assert verdict(world, OLD, progress=shown.append).unchanged_since is not None
    assert shown == [f"verifying: {number} of 3 runs" for number in (1, 2, 3, 1, 2, 3)]


def test_a_stored_result_that_is_damaged_is_computed_again(world):
    verdict(world, OLD)
    (stored,) = (world / "cache").iterdir()
    for text in ("", "[]", "[" * 100_000, '{"files": 1}', '{"files": {}, "day": "x"}'):
        stored.write_text(text)

        assert verdict(world, OLD).unchanged_since is None
