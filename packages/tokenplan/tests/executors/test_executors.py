"""One protocol, three executors."""

import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from functools import partial
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path

import pytest
from packages.tokenplan.tests.executor_jobs import JOBS
from packages.tokenplan.tests.processes import (
    cpu_ticks,
    descendants,
    have_ended,
    is_running,
    pass_limits,
)

from tokenplan.executors import (
    ExecutorError,
    ExecutorLostError,
    Failed,
    Finished,
    InProcess,
    Job,
    Limits,
    Reported,
    WorkerLost,
    WorkerVersionError,
    pool,
    ray_cluster,
)
from tokenplan.executors import workers as workers_module
from tokenplan.executors.messages import MessageError, read_message
from tokenplan.executors.ray_address import _REQUEST, address_text, parse_address

LIMITS = Limits(num_bytes=200 << 20)
MAKERS = {
    "inprocess": lambda: InProcess(LIMITS),
    "pool": lambda: pool(2, LIMITS),
    "ray": lambda: ray_cluster("local", 2, LIMITS),
}


@pytest.fixture(scope="module", params=MAKERS)
def executor(request):
    if request.param == "ray":
        pytest.importorskip("ray")
    with MAKERS[request.param]() as executor:
        yield executor


with_workers = pytest.mark.parametrize("executor", ["pool", "ray"], indirect=True, scope="module")


def events_of(executor, *jobs):
    for job in jobs:
        executor.submit(job)
    events = []
    executor.run(events.append)
    return events


def events_past_limits(monkeypatch, executor, *jobs):
    """The same, with a limit that is over once job "a" has reported and the others have ended."""
    events = []

    def has_begun():
        ended = len(only(events, Finished))
        return ended == len(jobs) - 1 and "a" in {event.key for event in events}

    pass_limits(monkeypatch, has_begun)
    monkeypatch.setattr(executor, "limits", Limits(3600))
    for job in jobs:
        executor.submit(job)
    executor.run(events.append)
    return events


def only(events, kind):
    return [event for event in events if isinstance(event, kind)]


def test_every_job_has_its_value(executor):
    events = events_of(executor, *(Job(f"{n}", JOBS + "square", n) for n in range(20)))

    assert {e.key: e.value for e in only(events, Finished)} == {f"{n}": n * n for n in range(20)}


def test_reports_come_before_the_value(executor):
    reported, finished = events_of(executor, Job("a", JOBS + "square", 3))

    assert reported[:2] == ("a", 3) and isinstance(reported, Reported)
    assert finished[:2] == ("a", 9) and finished.seconds >= 0


def test_an_error_is_an_event_with_its_log(executor):
    (failed,) = events_of(executor, Job("a", JOBS + "fail", 7))

    assert failed[:3] == ("a", "error", "ValueError: 7 is wrong")
    assert "in fail\n" in failed.log


def test_a_message_to_users_names_no_line_of_a_worker(executor):
    (failed,) = events_of(executor, Job("a", JOBS + "none"))

    assert failed.what.startswith(f"NoFunctionError: {JOBS[:-1]} has no function none\n")


@pytest.mark.parametrize("name", ["SystemExit", "KeyboardInterrupt", "GeneratorExit", "Own"])
def test_a_job_that_leaves_has_failed_alone(executor, name):
    events = events_of(executor, Job("a", JOBS + "leave", name), Job("b", JOBS + "square", 2))

    assert [e[:3] for e in only(events, Failed)] == [("a", "error", f"{name}: 3")]
    assert [e.key for e in only(events, Finished)] == ["b"]


def test_a_job_that_forks_has_one_end(executor):
    events = events_of(executor, *(Job(f"{n}", JOBS + "fork", n) for n in range(6)))

    assert sorted(e.value for e in only(events, Finished)) == [n * n for n in range(6)]
    assert sorted(e.value for e in only(events, Reported)) == [*range(6)]


def test_a_report_of_a_job_that_has_ended_is_dropped():
    with pool(1) as executor:
        events = events_of(
            executor, *(Job(name, JOBS + "report_late", name) for name in ("first", "second"))
        )

    assert [e.key for e in events] == ["first", "second"]


def test_the_next_job_begins_in_the_folder_of_the_driver(executor, tmp_path):
    (tmp_path / "job.py").write_text("import os\ndef folder(payload, report): return os.getcwd()")
    folder = Path.cwd()

    events = events_of(
        executor, *(Job(f"{n}", JOBS + "change_folder") for n in range(4)),
        Job("a", f"{tmp_path}/job.py:folder"),
    )  # fmt: skip

    found = {e.key: e.value for e in only(events, Finished)}
    assert found["a"] == str(folder) == str(Path.cwd())


def test_a_job_imports_the_modules_of_its_own_folder_when_it_is_called(executor, tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "beside.py").write_text(f"VALUE = {name!r}")
        (tmp_path / name / "job.py").write_text(
            "def late(payload, report):\n    import beside\n    return beside.VALUE"
        )
    order = "abab" * 4

    events = events_of(
        executor, *(Job(f"{n}", f"{tmp_path}/{of}/job.py:late") for n, of in enumerate(order))
    )

    found = {event.key: event.value for event in only(events, Finished)}
    assert found == {f"{n}": of for n, of in enumerate(order)}


def test_an_exception_without_a_text_is_an_error_with_its_log(executor):
    (failed,) = events_of(executor, Job("a", JOBS + "leave", "UnsaidError"))

    assert failed[:3] == ("a", "error", "UnsaidError: <exception str() failed>")
    assert "in leave\n" in failed.log


@with_workers
@pytest.mark.parametrize("what", ["value", "report"])
def test_what_cannot_be_sent_is_an_error_of_its_job(executor, what):
    (failed,) = events_of(executor, Job("a", JOBS + "unpicklable", what))

    assert failed[:2] == ("a", "error")
    assert "cannot pickle '_thread.lock' object" in failed.what and "Traceback" in failed.log


@with_workers
def test_a_job_that_hangs_ends_at_its_limit_and_others_run(executor, monkeypatch):
    jobs = Job("a", JOBS + "hang"), Job("b", JOBS + "square", 2)
    (failed,) = only(events_past_limits(monkeypatch, executor, *jobs), Failed)

    assert failed[:3] == ("a", "time", "stopped after 3600 s, its limit")


def test_a_job_of_this_process_that_hangs_ends_at_its_limit_and_others_run():
    with InProcess(Limits(0.2)) as executor:
        events = events_of(executor, Job("a", JOBS + "hang"), Job("b", JOBS + "hang"))

    ended = ("time", "stopped after 0.2 s, its limit")
    assert [e[:3] for e in only(events, Failed)] == [("a", *ended), ("b", *ended)]


def test_a_limit_ends_a_job_of_this_process_and_not_what_handles_an_event():
    events = []

    def watch(event):
        if isinstance(event, Reported):
            signal.raise_signal(signal.SIGALRM)
        events.append(event)

    with InProcess(Limits(3600)) as executor:
        executor.submit(Job("a", JOBS + "hang"))
        executor.run(watch)

    assert [type(event) for event in events] == [Reported, Failed]


@pytest.mark.parametrize("sent", [b"\0", b"\0\1\0\0x", b"\xff" * 8, b"\x80\0\0\0", b"\xff" * 13])
def test_a_job_that_hangs_within_a_message_ends_at_its_limit(sent, monkeypatch):
    jobs = Job("a", JOBS + "begin_message", sent), Job("b", JOBS + "square", 2)
    with pool(2) as executor:
        events = events_past_limits(monkeypatch, executor, *jobs)

    assert [e[:2] for e in only(events, Failed)] == [("a", "time")]


@pytest.mark.parametrize(("code", "kind"), [(3, "poisoned"), (None, "time")])
def test_what_a_job_has_printed_is_its_log(code, kind, capfd, monkeypatch):
    with pool(1) as executor:
        run = events_of if code else partial(events_past_limits, monkeypatch)
        events = run(executor, Job("a", JOBS + "print_and_end", code))

    assert [e.kind for e in only(events, Failed)] == [kind]
    assert only(events, Failed)[0].log == "the last words\nof a child\n"
    assert capfd.readouterr() == ("", "")


def test_a_message_that_comes_in_parts_is_one():
    sizes = [0, 1, 100_000, 3 << 20]
    with pool(1) as executor:
        events = events_of(executor, *(Job(f"{n}", JOBS + "text", n) for n in sizes))

    assert [len(e.value) for e in only(events, Finished)] == sizes


def test_a_job_that_needs_too_much_memory_fails_alone(executor):
    events = events_of(
        executor, Job("a", JOBS + "allocate", 1 << 30), Job("b", JOBS + "allocate", 1 << 20)
    )

    assert [e[:3] for e in only(events, Failed)] == [("a", "memory", "exceeds 200 MiB")]
    assert [e[:2] for e in only(events, Finished)] == [("b", 1 << 20)]


def test_a_cancelled_job_has_no_more_events(executor):
    executor.submit(Job("a", JOBS + "square", 2))
    executor.cancel("a")

    assert [e.key for e in only(events_of(executor, Job("b", JOBS + "square", 2)), Finished)] == [
        "b"
    ]


@with_workers
def test_a_running_job_is_cancelled_from_an_event(executor):
    for job in (Job("a", JOBS + "hang"), Job("b", JOBS + "square", 2)):
        executor.submit(job)
    events = []

    def watch(event):
        events.append(event)
        if {each.key for each in events} == {"a", "b"}:
            executor.cancel("a")

    executor.run(watch)

    assert sorted(e[:2] for e in events if e.key == "b") == [("b", 2), ("b", 4)]
    assert [e[:2] for e in events if e.key == "a"] == [("a", "begun")]


@with_workers
def test_the_job_of_a_lost_worker_runs_again(executor, tmp_path):
    events = events_of(executor, Job("a", JOBS + "die_first", str(tmp_path)))

    assert [e.key for e in only(events, WorkerLost)] == ["a"]
    assert [e[:2] for e in only(events, Finished)] == [("a", "ran again")]


@with_workers
def test_a_job_that_ends_two_workers_is_not_run_again(executor):
    events = events_of(executor, Job("a", JOBS + "die"), Job("b", JOBS + "square", 2))

    assert [e[:2] for e in only(events, Failed)] == [("a", "poisoned")]
    assert only(events, Failed)[0].what.startswith("ended 2 workers: ")
    assert len(only(events, WorkerLost)) == 2
    assert [e.key for e in only(events, Finished)] == ["b"]


def test_a_value_that_calls_a_function_where_it_is_read_is_a_lost_worker(tmp_path):
    with pool(1) as executor:
        events = events_of(executor, Job("a", JOBS + "crafted", str(tmp_path / "made")))

    assert not (tmp_path / "made").exists()
    assert {e.what for e in only(events, WorkerLost)} == {
        "it has sent posix.mkdir, which is not a result"
    }
    assert [e.kind for e in only(events, Failed)] == ["poisoned"]


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("neuroncore.alu", "np.load"),
        ("numpy", "load"),
        ("tokenplan.executors.messages", "pickle.loads"),
    ],
)
def test_a_message_names_no_function_by_a_path(module, name):
    sent = (
        pickle.PROTO + b"\x04" + b"".join(map(_text, (module, name))) + pickle.STACK_GLOBAL + b"."
    )

    with pytest.raises(MessageError, match=f"it has sent {module}.{name}, which is not a result"):
        read_message(sent)


def _text(word):
    return pickle.SHORT_BINUNICODE + bytes([len(word)]) + word.encode()


@with_workers
def test_a_worker_ends_with_all_that_its_job_has_started(executor, monkeypatch):
    events = events_past_limits(monkeypatch, executor, Job("a", JOBS + "start_children"))

    ((_, ids, _),) = only(events, Reported)
    assert [e.kind for e in only(events, Failed)] == ["time"]
    assert len(ids) == 3 and have_ended(ids)


def test_what_a_job_has_started_ends_with_a_worker_that_ends_by_itself():
    with pool(1) as executor:
        events = events_of(executor, Job("a", JOBS + "start_children", "die"))

        ids = [number for event in only(events, Reported) for number in event.value]
        assert [e.kind for e in only(events, Failed)] == ["poisoned"]
        assert len(ids) == 6 and have_ended(ids)


def test_a_driver_that_is_killed_ends_all_that_its_jobs_have_started():
    driver, ids = driver_of("start_children")
    driver.kill()
    driver.communicate()

    assert len(ids) == 3 and have_ended(ids)


STARTING = """
from tokenplan.executors import Job, pool
with pool(2, preload="slow_to_import") as executor:
    executor.submit(Job("a", "builtins:print"))
    executor.run(print)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_workers_start_ends_all_of_them(number, tmp_path):
    (tmp_path / "slow_to_import.py").write_text("import time; time.sleep(60)")
    command = [sys.executable, "-c", STARTING]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as driver:
        while len(below := descendants(driver.pid)) < 1:
            assert driver.poll() is None
        driver.send_signal(number)
        out, err = driver.communicate()

    assert (out, err.splitlines()[-1]) == ("", "KeyboardInterrupt")
    assert have_ended(below)


@pytest.mark.parametrize("executor", ["pool(1)", "ray_cluster('local', 1)"])
def test_workers_find_no_module_in_the_current_folder(executor, tmp_path):
    if "ray" in executor:
        pytest.importorskip("ray")
    for module in ("pickle", "neuroncore"):
        (tmp_path / f"{module}.py").write_text("import os; os._exit(9)")
    code = (
        "from tokenplan.executors import Job, pool, ray_cluster\n"
        f"with {executor} as executor:\n"
        "    executor.submit(Job('a', 'builtins:print', 2))\n"
        "    executor.run(lambda event: print(type(event).__name__))"
    )

    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True
    )

    assert done.stdout == "Finished\n", done.stderr


def test_a_worker_that_replaces_another_is_no_part_of_the_start_up(tmp_path):
    with pool(1) as executor:
        events_of(executor, Job("a", JOBS + "square", 2))
        startup_s = executor.startup_s
        events = events_of(executor, Job("b", JOBS + "die_first", str(tmp_path)))

        assert only(events, WorkerLost)
        assert executor.startup_s == startup_s > 0


def test_a_worker_whose_job_blocks_threads_ends_with_its_driver():
    driver, (number,) = driver_of("block_threads")
    begun = cpu_ticks(number)
    while cpu_ticks(number) < begun + 10:
        time.sleep(0.01)
    driver.kill()
    driver.communicate()

    assert have_ended([number])


def driver_of(job):
    """A process whose pool runs a job, and the processes that this has reported."""
    driver = subprocess.Popen([
        sys.executable, "-c",
        "from tokenplan.executors import Job, pool\n"
        "with pool(1) as executor:\n"
        f"    executor.submit(Job('a', {JOBS + job!r}))\n"
        "    executor.run(lambda event: print(*event.value, flush=True))",
    ], stdout=subprocess.PIPE)  # fmt: skip
    assert driver.stdout is not None
    ids = [*map(int, driver.stdout.readline().split())]
    assert all(map(is_running, ids)) and ids
    return driver, ids


@pytest.mark.parametrize("limits", [{"seconds": 0}, {"num_bytes": -1}])
def test_a_limit_that_allows_nothing_is_rejected(limits):
    with pytest.raises(ExecutorError, match="is not positive"):
        Limits(**limits)


def test_no_worker_is_rejected():
    with pytest.raises(ExecutorError, match="no worker is allowed"):
        pool(0)


@pytest.mark.parametrize(
    ("address", "what"),
    [
        ("127.0.0.1:9", "does not answer"),
        ("a:99999", "does not answer"),
        ("[::1]:9", r"\[::1\]:9 does not answer"),
        ("nowhere", "is not an address"),
        ("::1:9", "is not an address"),
        ("[head]:9", "is not an address"),
    ],
)
def test_an_address_without_a_cluster_is_rejected_before_work_begins(address, what):
    pytest.importorskip("ray")
    with pytest.raises(ExecutorError, match=what):
        ray_cluster(address, 1)


def test_a_server_that_is_not_a_cluster_is_rejected_before_work_begins():
    pytest.importorskip("ray")
    with HTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()

        with pytest.raises(ExecutorError, match="does not answer as Ray does"):
            ray_cluster(f"127.0.0.1:{server.server_port}", 1)


SETTINGS = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
KNOWN = b"\x88\x0f\x10\x10application/grpc"
FIELDS = KNOWN + b"\x00\x0bgrpc-status\x0212"
CODED = KNOWN + b"\x00\x88\x9a\xca\xc8\xb2\x12\x34\xda\x8f\x82\x08\xbf"
"""The same in the code of RFC 7541, appendix B."""


@pytest.mark.parametrize(
    "answer",
    [
        SETTINGS,  # and no answer
        SETTINGS + bytes([0, 0, 1, 1, 5, 0, 0, 0, 1, 0x8D]),  # status 404
        SETTINGS + bytes([0, 0, len(FIELDS), 1, 5, 0, 0, 0, 1]) + FIELDS,  # an unknown method
        SETTINGS + bytes([0, 0, len(CODED), 1, 5, 0, 0, 0, 1]) + CODED,
        SETTINGS + bytes([0, 0, len(KNOWN), 1, 4, 0, 0, 0, 1]) + KNOWN,  # and no end
        bytes([0, 0, len(KNOWN), 1, 5, 0, 0, 0, 1]) + KNOWN,  # no settings
        b"\xff" * 9,
        _REQUEST,
        _REQUEST[24:],
    ],
    ids=["settings", "status", "grpc", "coded", "no end", "no settings", "bytes", "echo", "frames"],
)
def test_a_server_of_the_same_protocol_is_rejected_before_work_begins(answer, monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.setattr("tokenplan.executors.ray_address.ANSWER_S", 0.5)

    def serve(server):
        connection, _ = server.accept()
        with connection:
            connection.sendall(answer)
            connection.recv(1)
            time.sleep(1)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()

        with pytest.raises(ExecutorError, match="does not answer as Ray does"):
            ray_cluster(f"127.0.0.1:{server.getsockname()[1]}", 1)


@pytest.mark.parametrize(("host", "form"), [("127.0.0.1", "{}"), ("::1", "[{}]")])
def test_a_head_is_found_by_its_address_of_either_version(host, form):
    status = KNOWN + b"\x00\x0bgrpc-status\x010"

    def serve(server):
        with server.accept()[0] as connection:
            connection.sendall(SETTINGS + bytes([0, 0, len(status), 1, 5, 0, 0, 0, 1]) + status)
            connection.recv(1 << 10)

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        opened = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip("this machine has no such address")
    with opened as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        head = host, server.getsockname()[1]

        assert parse_address(f"{form.format(host)}:{head[1]}") == head
        assert address_text(head) == f"{form.format(host)}:{head[1]}"


def test_absent_ray_names_the_extra(monkeypatch):
    monkeypatch.setattr("tokenplan.executors.ray_actors.find_spec", lambda name: None)

    with pytest.raises(ExecutorError, match=r"pip install 'tokenplan\[ray\]'"):
        ray_cluster("local", 1)


def test_a_worker_of_another_version_is_reported(monkeypatch):
    monkeypatch.setattr(workers_module, "release", lambda: "neuroncore 99")

    with pytest.raises(WorkerVersionError, match="neuroncore 99"), pool(1) as executor:
        events_of(executor, Job("a", JOBS + "square", 2))


def test_workers_that_do_not_start_end_the_run():
    executor = pool(1, preload="no_such_module")

    with pytest.raises(ExecutorLostError, match=r"(?s)exit code 1.*no_such_module"), executor:
        events_of(executor, Job("a", JOBS + "square", 2))
