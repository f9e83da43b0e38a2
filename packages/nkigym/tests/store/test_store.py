"""What searches find is kept: by content, by several writers, through kills and full disks."""

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from neuroncore.program import parse_program
from nkigym.store import (
    Problem,
    Recorder,
    Result,
    Store,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreVersionError,
    problem_keys,
    problem_of,
)
from nkigym.store.store import _JOB

ROOT = Path(__file__).parents[4]
PROBLEM = Problem("sha256:1", "f", "trn2", "0.6", "costs", "program f …")


def results(first, last):
    return [Result(f"d{n}", 1000.0 - n, 1.0, (["step", n],)) for n in range(first, last)]


def test_results_come_back_fastest_first_with_schedule_and_root(tmp_path):
    with Store(tmp_path / "found") as store:
        store.add(PROBLEM, results(0, 5))

    with Store(tmp_path / "found", create=False) as store:
        assert store.problems() == [PROBLEM]
        first, second = store.best(PROBLEM.key, 2)
        assert (first.latency_ns, second.latency_ns) == (996, 997)
        assert first.schedule == (["step", 4],)
        assert first.program == PROBLEM.program
        assert store.latencies(PROBLEM.key)["d3"] == 997


def test_of_equal_latencies_the_shortest_schedule_is_best(tmp_path):
    with Store(tmp_path / "found") as store:
        long, short = Result("a", 7, 1, (1, 2)), Result("b", 7, 1, (3,))
        store.add(PROBLEM, [long, short])

        assert store.best(PROBLEM.key)[0].digest == "b"


def test_a_schedule_keeps_the_root_that_it_began_with(tmp_path):
    """Two kernels of one content key may be written differently."""
    other = Problem(PROBLEM.key, "g", "trn2", "0.6", "costs", "program g …")
    with Store(tmp_path / "found") as store:
        store.add(PROBLEM, [Result("a", 7, 1, (1,))])
        store.add(other, [Result("b", 6, 1, (1,))])

        assert [r.program for r in store.best(PROBLEM.key, 2)] == ["program g …", "program f …"]


def test_reports_of_runs_are_kept_in_order(tmp_path):
    with Store(tmp_path / "found") as store:
        store.add(PROBLEM)
        for number in range(3):
            store.add_run(PROBLEM, {"candidates": number})

        assert [run["candidates"] for run in store.runs(PROBLEM.key)] == [0, 1, 2]


# -- keys ------------------------------------------------------------------------------------------

KERNEL = """\
program("trn2", "0.6")
def f(x: float32[128, 64]):
    output = buffer(float32[128, 64], shared_hbm)
    t = buffer(float32[128, 64], sbuf)
    dma_copy(dst=t[:, :], src=x[:, :])
    dma_copy(dst=output[:, :], src=t[:, :])
    return output
"""


def key(old="", new=""):
    return problem_of(parse_program(KERNEL.replace(old, new))).key


@pytest.mark.parametrize("name", ["a?b#c%41.db", os.fsdecode(b"\xe9.db"), "/x.db"])
def test_a_path_is_any_of_the_system(name, tmp_path):
    path = f"/{tmp_path}/{name}"
    with Store(path) as store:
        assert store.problems() == []

    assert len([*tmp_path.iterdir()]) == 1 and Path(path).exists()


def test_names_are_no_part_of_a_key():
    renamed = KERNEL.replace("    t = ", "    tile = ").replace("t[:", "tile[:")
    renamed = renamed.replace("outputile[", "output[").replace("def f", "def g")

    assert problem_of(parse_program(renamed)).key == key()


@pytest.mark.parametrize(
    ("old", "new"),
    [("trn2", "trn1"), ('"0.6"', '"0.5"'), ("64", "32"), ("float32", "bfloat16")],
)
def test_target_version_shapes_and_formats_are_part_of_a_key(old, new):
    assert key(old, new) != key()


def test_other_cost_constants_make_another_key(monkeypatch):
    before = key()
    monkeypatch.setattr(problem_keys, "costs_version", lambda: "other")

    assert key() != before


# -- several processes -----------------------------------------------------------------------------

WRITER = """
import sys
from nkigym.store import Problem, Result, Store
path, who, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
problem = Problem("sha256:1", "f", "trn2", "0.6", "costs", "program f …")
store = Store(path)
print("ready", flush=True)
for n in range(number):
    store.add(problem, [Result(f"{who}-{n}-{k}", 5.0, 1.0, ()) for k in range(3)])
    print(n, flush=True)
"""


def writer(path, who, number):
    arguments = [sys.executable, "-c", textwrap.dedent(WRITER), str(path), who, str(number)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


RUNS = """
import sys
from packages.nkigym.tests.store.test_store import PROBLEM
from nkigym.store import Store

with Store(sys.argv[1]) as store:
    for job in range(40):
        store.add_run(PROBLEM, {"job": f"j{job}", "driver": sys.argv[2]})
        store.add_run(PROBLEM, {"driver": sys.argv[2]})
"""


def test_two_drivers_of_one_sweep_add_each_job_once(tmp_path):
    path = tmp_path / "found"
    with Store(path) as store:
        store.add(PROBLEM)
    command = [sys.executable, "-c", RUNS, str(path)]

    drivers = [subprocess.Popen([*command, name], cwd=ROOT) for name in "ab"]

    assert [driver.wait(60) for driver in drivers] == [0, 0]
    with Store(path) as store:
        assert len(store.finished()) == 40
        assert len(store.runs(PROBLEM.key)) == 40 + 2 * 40


def test_the_report_of_a_job_is_found_by_an_index(tmp_path):
    with Store(tmp_path / "found") as store:
        store.add(PROBLEM)
        for job in ("a", "b", "a", None, None):
            store.add_run(PROBLEM, {} if job is None else {"job": job})

        assert [run.get("job") for run in store.runs(PROBLEM.key)] == ["b", "a", None, None]
        plan = store._made.execute(f"EXPLAIN QUERY PLAN DELETE FROM runs WHERE {_JOB} = 'a'")
        assert "SEARCH runs USING INDEX jobs" in str(plan.fetchall())


def test_a_store_without_that_index_has_it_once_it_is_opened_to_be_written(tmp_path):
    with Store(tmp_path / "found") as store:
        store._made.execute("DROP INDEX jobs")
    indices = "SELECT name FROM sqlite_master WHERE name = 'jobs'"

    for create, found in ((False, []), (True, [("jobs",)])):
        with Store(tmp_path / "found", create=create) as store:
            assert store._made.execute(indices).fetchall() == found


def test_writers_at_the_same_time_lose_nothing(tmp_path):
    path = tmp_path / "found"
    writers = [writer(path, f"w{n}", 20) for n in range(4)]  # they also make the file together

    assert [each.communicate() and each.returncode for each in writers] == [0] * 4

    with Store(path, create=False) as store:
        assert len(store.latencies("sha256:1")) == 4 * 20 * 3


def test_a_killed_writer_leaves_what_it_had_committed(tmp_path):
    path = tmp_path / "found"
    killed, other = writer(path, "killed", 1_000_000), writer(path, "other", 10)
    assert killed.stdout is not None
    said = [killed.stdout.readline() for _ in range(12)]
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate()
    other.communicate()
    committed = int(said[-1])

    with Store(path) as store:
        store.add(Problem("sha256:1", "f", "trn2", "0.6", "costs", "program f …"), results(0, 1))
        found = store.latencies("sha256:1")

    for n in range(committed + 1):
        assert {f"killed-{n}-{k}" for k in range(3)} <= found.keys()
    transactions = [name.rpartition("-")[0] for name in found if name.startswith("killed")]
    assert all(transactions.count(each) == 3 for each in set(transactions))  # all or nothing
    assert sum(name.startswith("other") for name in found) == 30


# -- what is rejected ------------------------------------------------------------------------------


def test_a_store_of_another_version_is_rejected_and_left_as_it_is(tmp_path):
    path = tmp_path / "found"
    Store(path).close()
    with sqlite3.connect(path) as made:
        made.execute("PRAGMA user_version = 1")
    before = path.read_bytes()

    with pytest.raises(StoreVersionError, match=r"another version(.|\n)*version 2(.|\n)*version 1"):
        Store(path)

    assert path.read_bytes() == before


def a_text(path):
    path.write_text("latency,schedule\n" * 400)


def another_database(path):
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE accounts (number INTEGER)")


def cut_off(path):
    with Store(path) as store:
        store.add(PROBLEM, results(0, 900))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def scratched(path):
    with Store(path) as store:
        store.add(PROBLEM, results(0, 900))
    content = bytearray(path.read_bytes())
    content[4096 * 3 : 4096 * 6] = b"\xff" * (4096 * 3)
    path.write_bytes(bytes(content))


def undecodable(path):
    """The name of a table is not UTF-8, and is in the error of SQLite."""
    Store(path).close()
    content = path.read_bytes()
    path.write_bytes(content.replace(b"tableproblemsproblems", b"table\xb9roblemsproblems"))


@pytest.mark.parametrize("make", [a_text, another_database, cut_off, scratched, undecodable])
def test_a_file_that_is_no_store_or_damaged_is_rejected_and_left_as_it_is(make, tmp_path):
    path = tmp_path / "found"
    make(path)
    before = path.read_bytes()

    with pytest.raises(StoreCorruptError, match="left as it is"):
        Store(path)

    assert path.read_bytes() == before


def test_a_kernel_whose_text_was_changed_is_rejected(tmp_path):
    file = tmp_path / "found"
    with Store(file) as store:
        store.add(PROBLEM, results(0, 2))
    changed = sqlite3.connect(file)
    changed.execute("UPDATE roots SET program = 'program g …'")
    changed.commit()
    changed.close()

    with Store(file, create=False) as store:
        with pytest.raises(StoreCorruptError, match="the text of a kernel was changed"):
            store.problems()
        with pytest.raises(StoreCorruptError, match="the text of a kernel was changed"):
            store.best(PROBLEM.key)


def test_errors_of_sqlite_are_in_our_words(tmp_path):
    Store(tmp_path / "found.db").close()
    cut = (tmp_path / "found.db").read_bytes()[:5000]
    damaged = "is damaged or not a store of nkigym\n    it is left as it is; name another file"
    for content, message in ((b"no table " * 100, damaged), (cut, damaged)):
        (tmp_path / "found.db").write_bytes(content)
        with pytest.raises(StoreError) as caught:
            Store(tmp_path / "found.db").problems()
        assert str(caught.value) == f"{tmp_path / 'found.db'} {message}", content[:20]
    with pytest.raises(StoreError) as caught:
        Store(tmp_path)
    assert str(caught.value) == f"{tmp_path} is a folder\n    expected: the file of a store"


def test_a_store_that_is_only_read_has_to_be_there(tmp_path):
    with pytest.raises(StoreError, match="store not found:"):
        Store(tmp_path / "nothing", create=False)
    with pytest.raises(StoreError, match="cannot be opened"):
        Store(tmp_path / "no folder" / "found")


def test_a_signal_while_results_are_written_keeps_them(tmp_path):
    with Store(tmp_path / "found") as store:
        store._made.set_trace_callback(
            lambda query: query.startswith("INSERT") and signal.raise_signal(signal.SIGINT)
        )
        with pytest.raises(KeyboardInterrupt):
            store.add(PROBLEM, results(0, 3))
        assert [found.digest for found in store.best(PROBLEM.key, 5)] == ["d2", "d1", "d0"]


FULL = """
import resource, sys
from nkigym.store import Problem, Recorder, Result, Store
problem = Problem("sha256:1", "f", "trn2", "0.6", "costs", "program f …")
store = Store(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
recorder = Recorder(store, problem)
for n in range(5000):
    recorder.add(Result(f"d{n:060}", 5000.0 - n, 1.0, (["step", n],)))
recorder.close({"candidates": 5000})
print(type(recorder.trouble).__name__, recorder.trouble.hint)
"""


def test_a_full_disk_is_said_and_what_was_found_is_kept(tmp_path):
    pytest.importorskip("resource")
    path = tmp_path / "found"

    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=True
    )

    assert done.stdout == f"{StoreFullError.__name__} what was found before is kept there\n"
    with Store(path) as store:
        kept = store.latencies("sha256:1")
        assert 0 < len(kept) < 5000
        assert sorted(kept) == [f"d{n:060}" for n in range(len(kept))]
        store.add(PROBLEM, results(0, 5))  # there is room again


def test_an_interruption_between_two_results_loses_none(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    with Store(tmp_path / "found") as store:
        recorder = Recorder(store, PROBLEM)
        recorder.add(results(0, 1)[0])
        with monkeypatch.context() as patched:
            patched.setattr(Store, "add", interrupted)
            with pytest.raises(KeyboardInterrupt):
                recorder.flush()
        recorder.flush()

        assert len(store.latencies(PROBLEM.key)) == 1


@pytest.fixture
def shared_folder():
    """A folder that another user may read."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def opened_by_a_user(path, **options):
    """The error of a process without root's rights."""
    read, write = os.pipe()
    if not (child := os.fork()):
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        try:
            Store(path, **options).close()
        except BaseException as wrong:
            os.write(write, f"{type(wrong).__name__}: {wrong}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as said:
        return said.read()


@pytest.mark.parametrize(("file", "folder"), [(0o444, 0o777), (0o666, 0o555)])
def test_a_store_that_may_not_be_written_is_rejected_before_a_search(file, folder, shared_folder):
    path = shared_folder / "a/found"
    path.parent.mkdir()
    Store(path).close()
    path.chmod(file)
    path.parent.chmod(folder)

    assert "may not be written" in opened_by_a_user(path)
    assert opened_by_a_user(path, create=False) == ""


def test_a_store_behind_a_link_in_a_folder_to_read_is_written(shared_folder):
    path, link = shared_folder / "a/found", shared_folder / "b/found"
    path.parent.mkdir()
    link.parent.mkdir()
    Store(path).close()
    link.symlink_to(path)
    for place, mode in ((path, 0o666), (path.parent, 0o777), (link.parent, 0o555)):
        place.chmod(mode)

    assert opened_by_a_user(link) == ""


def test_a_recorder_writes_what_waits_at_the_end(tmp_path):
    with Store(tmp_path / "found") as store:
        recorder = Recorder(store, PROBLEM)
        for each in results(0, 3):
            recorder.add(each)
        recorder.close({"candidates": 3})

        assert len(store.latencies(PROBLEM.key)) == 3
        assert recorder.trouble is None


def test_the_fastest_of_many_results_is_found_by_an_index(tmp_path):
    results = [Result(f"{n}", float(10_000 - n), 1.0, ({"at": [n]},)) for n in range(10_000)]
    with Store(tmp_path / "s.db") as store:
        store.add(PROBLEM, results)
        assert [each.digest for each in store.best(PROBLEM.key, 2)] == ["9999", "9998"]

    with sqlite3.connect(tmp_path / "s.db") as opened:
        plan = opened.execute(
            "EXPLAIN QUERY PLAN SELECT digest FROM results WHERE problem = ? ORDER BY latency_ns",
            ("k",),
        ).fetchall()
    assert "fastest" in str(plan)
