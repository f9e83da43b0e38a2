"""Hostile kernels that get past the guard in Python: the kernel of the system stops them, and what
they tried fails the run although they go on to return an equal result."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from neuroncore.confinement import process as confinement
from neuroncore.confinement.environment import allowed_environment
from nki_migrate.verify.job import Job, Outcome
from nki_migrate.verify.process import FORKS, Children, Limits

ESCAPES = {
    "a descriptor of a folder": (
        "os.open('new', os.O_CREAT | os.O_WRONLY, dir_fd=os.open(outside, os.O_RDONLY))",
        "writes {}/new (openat)",
    ),
    "the C library through pythonapi": (
        "ctypes.pythonapi.unlink((outside + '/kept').encode())",
        "calls a C function (ctypes.dlsym 'unlink')",
    ),
    "a function that starts processes, from the guard's closure": (
        "import _posixsubprocess\n"
        "start = _posixsubprocess.fork_exec.__closure__[0].cell_contents\n"
        "true = [b'/bin/true']\n"
        "start(true, true, False, (), None, None, *[-1] * 8, False, False, -1, None, None, None,"
        " -1, None, False)",
        "starts a process (clone)",
    ),
    "ATTACH of sqlite": (
        "sqlite3.connect(':memory:').execute(f\"ATTACH '{outside}/new' AS a\")",
        "writes {}/new (openat)",
    ),
    "a device": (
        "os.mknod(outside + '/new', 0o600)",
        "makes a device or a pipe (mknodat)",
    ),
    "a named pipe": (
        "os.mkfifo(outside + '/new')",
        "makes a device or a pipe (mknodat)",
    ),
    "a signal to the parent by descriptor": (
        "signal.pidfd_send_signal(os.pidfd_open(os.getppid()), 9)",
        "traces a process (pidfd_open)",
    ),
    "a signal to the parent by thread": (
        "guard_off(); os.kill(os.getppid(), 9)",
        "signals a process (kill)",
    ),
    "a socket made by a C class": (
        "guard_off(); socket.socket(socket.AF_INET, socket.SOCK_STREAM)",
        "uses a socket (socket)",
    ),
    "a program in place of this one": (
        "guard_off(); os.execv('/bin/true', ['true'])",
        "starts a process (execve)",
    ),
    "a file that is removed": ("guard_off(); os.remove(outside + '/kept')", "removes {}/kept"),
    "a file that is renamed": (
        "guard_off(); os.rename(outside + '/kept', 'mine')",
        "renames {}/kept",
    ),
    "a link to outside": (
        "guard_off(); os.symlink(outside, 'link'); open('link/new', 'w')",
        "writes {}/new (openat)",
    ),
    "a path of this process": (
        "guard_off(); n = os.open(outside + '/kept', os.O_RDONLY); open(f'/proc/self/fd/{n}', 'w')",
        "writes {}/kept (openat)",
    ),
    "the mode of a file": ("guard_off(); os.chmod(outside + '/kept', 0)", "changes {}/kept"),
    "no death with the parent": (
        "guard_off(); ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)",
        "outlives its parent (prctl)",
    ),
    "the priority of the parent": (
        "os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)",
        "changes a process (setpriority)",
    ),
    "a message queue": (
        "guard_off(); ctypes.CDLL(None).msgget(0x25, 0o1600)",
        "uses memory or messages of other processes (msgget)",
    ),
    "the flags of a file": (
        "import fcntl; fcntl.ioctl(os.open(outside + '/kept', os.O_RDONLY), 0x40086602, bytes(8))",
        "changes {}/kept (ioctl)",
    ),
    "a higher limit": (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
        "raises a limit (prlimit64)",
    ),
}
GUARD_OFF = """
import ctypes, gc, os, signal, socket, sqlite3

def guard_off():
    "Empties the guard's methods: what is left is the system."
    guard = next(o for o in gc.get_objects() if type(o).__name__ == "Guard")
    type(guard).__call__ = lambda self, event, given: None
"""


def outcome_of(folder: Path, code: str, seconds: float = 60.0) -> Outcome:
    """How the run of a function ends that executes `code`, forgets its errors and returns 1."""
    body = textwrap.indent(code, " " * 8)
    kernel = f"def kernel():\n    try:\n{body}\n    except BaseException: pass\n    return 1\n"
    text = f"{GUARD_OFF}\noutside = {str(folder / 'outside')!r}\n{kernel}"
    (folder / "k.py").write_text(text, encoding="utf-8")
    with Children(Limits(seconds)) as children:
        return children.run(Job(folder / "k.py", "kernel", (), 0, ((),)))


@pytest.fixture
def world(tmp_path: Path) -> Path:
    if not FORKS:
        pytest.skip("only Linux confines processes")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/kept").write_text("kept")
    return tmp_path


@pytest.mark.parametrize(("code", "expected"), ESCAPES.values(), ids=ESCAPES)
def test_an_escape_changes_nothing_and_fails_the_run(world: Path, code: str, expected: str):
    mode = (world / "outside/kept").stat().st_mode

    outcome = outcome_of(world, code)

    assert not outcome.is_whole
    wanted = expected.format(world / "outside")
    assert any(wanted in attempt for attempt in outcome.blocked), outcome
    assert [*(world / "outside").iterdir()] == [world / "outside/kept"]
    assert (world / "outside/kept").read_text() == "kept"
    assert (world / "outside/kept").stat().st_mode == mode


def test_threads_products_and_files_of_its_own_are_free(world: Path):
    outcome = outcome_of(
        world,
        "guard_off()\n"
        "import tempfile, threading, numpy\n"
        "thread = threading.Thread(target=print); thread.start(); thread.join()\n"
        "numpy.ones((256, 256)) @ numpy.ones((256, 256))\n"
        "os.makedirs('a/b', exist_ok=True); os.rename('a/b', 'c'); os.chmod('c', 0o700)\n"
        "tempfile.TemporaryFile().write(b'x'); open(os.devnull, 'w').write('x')\n"
        "socket.socketpair(); os.kill(os.getpid(), 0); os.makedirs(outside, exist_ok=True)",
    )

    assert outcome.is_whole, outcome


def test_calls_that_fail_by_themselves_end_nothing(world: Path):
    outcome = outcome_of(
        world,
        "guard_off(); os.symlink('b', 'a'); os.symlink('a', 'b')\n"
        "for call in (lambda: open('a', 'w'), lambda: os.mkdir('x' * 300)):\n"
        "    try: call()\n"
        "    except OSError: pass",
    )

    assert outcome.is_whole, outcome


def test_a_path_that_is_not_in_memory_is_an_attempt(world: Path):
    outcome = outcome_of(world, "guard_off(); ctypes.CDLL(None).open(ctypes.c_void_p(-8), 1)")

    assert outcome.blocked == ("writes a file (openat)",), outcome


def test_an_attempt_is_one_line_of_printable_characters(world: Path):
    outcome = outcome_of(world, "guard_off(); open(outside + '/\\x1b[2J\\nk  yes', 'w')")

    assert outcome.blocked == (f"writes {world}/outside/\\x1b[2J\\nk  yes (openat)",)


FOLDER = "folder = os.path.dirname(os.getcwd())\n"
TAKEN_BACK = {
    "removed": "for name in os.listdir(folder):\n"
    "    os.path.isdir(f'{folder}/{name}') or os.remove(f'{folder}/{name}')",
    "repeated": "for i in range(2000):\n"
    "    try: open(outside + '/' + 200 * 'x' + str(i), 'w')\n"
    "    except OSError: pass",
}


@pytest.mark.parametrize("code", TAKEN_BACK.values(), ids=TAKEN_BACK)
def test_an_attempt_that_the_guard_has_reported_is_not_taken_back(world: Path, code: str):
    tried = "try: open(outside + '/new', 'w')\nexcept OSError: pass\n"

    outcome = outcome_of(world, f"{FOLDER}{tried}{code}")

    assert f"{world}/k.py:13: writes {world}/outside/new (open)" in outcome.blocked


def test_code_that_closes_all_descriptors_fails_where_it_tries_something(world: Path):
    outcome = outcome_of(world, "os.closerange(0, 4096); open(outside + '/new', 'w')")

    assert outcome.error == "exit code 1: no message"


ARRAY = {"file": "out_0_0.bin", "dtype": "float32", "shape": [1]}
RECORDS = {
    "no JSON": "{",
    "brackets": "[" * 100_000,
    "digits": "9" * 100_000,
    "no variants": json.dumps({"variants": 3, "findings": [], "error": None}),
    "objects": json.dumps(
        {"variants": [{"arrays": [ARRAY | {"dtype": "object"}], "returned": 1}],
         "findings": [], "error": None}
    ),
    "a large shape": json.dumps(
        {"variants": [{"arrays": [ARRAY | {"shape": [10**30]}], "returned": 1}],
         "findings": [], "error": None}
    ),
}  # fmt: skip
OVERWRITTEN = {
    **{name: f"open(record, 'w').write({text!r})" for name, text in RECORDS.items()},
    "a link to something endless": "os.remove(record); os.symlink('/dev/zero', record)",
    "a folder": "os.remove(record); os.mkdir(record)",
    "facts": "open(folder + '/facts_0000.json', 'w').write('[')",
    "files": "open(folder + '/read.json', 'w').write('{')",
}


@pytest.mark.parametrize("code", OVERWRITTEN.values(), ids=OVERWRITTEN)
def test_a_record_that_the_code_overwrites_is_an_error_of_the_run(world: Path, code: str):
    ends = "open(folder + '/out_0_0.bin', 'wb').write(bytes(4))\nos._exit(0)"

    outcome = outcome_of(world, f"{FOLDER}record = folder + '/result.json'\n{code}\n{ends}")

    assert outcome.error == "the code that ran has overwritten the record of the run"


def test_a_log_without_end_is_not_read(world: Path):
    log = "os.remove(folder + '/log.txt'); os.symlink('/dev/zero', folder + '/log.txt')"

    outcome = outcome_of(world, f"{FOLDER}{log}; os._exit(3)")

    assert outcome.error == "exit code 3: no message"


def test_a_local_socket_is_denied_and_not_an_attempt(world: Path):
    outcome = outcome_of(world, "guard_off(); socket.socket(socket.AF_UNIX); open('made', 'w')")

    assert outcome.is_whole


def test_a_job_sees_no_key_of_its_user(world: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SERVICE_TOKEN", "secret")

    outcome = outcome_of(world, "assert 'SERVICE_TOKEN' not in os.environ; os._exit(0)")

    assert outcome.error == "the process ended without giving all its results"
    assert allowed_environment({"LC_ALL": "C", "AWS_KEY": "k"}) == {"LC_ALL": "C"}


def test_an_endless_kernel_is_stopped_at_its_limit(world: Path):
    outcome = outcome_of(world, "while True: pass", seconds=2)

    assert outcome.error == "stopped after 2 s; --timeout allows more"


@pytest.mark.parametrize(
    ("platform", "version", "expected"),
    [
        ("linux", 6, ""),
        ("linux", 0, "the kernel has no Landlock: a second thread of user code can write outside"),
        ("darwin", 0, "nothing but Python's audit events confines the kernels that run"),
    ],
)
def test_what_a_system_cannot_stop_is_a_sentence(monkeypatch, platform, version, expected):
    monkeypatch.setattr(confinement.sys, "platform", platform)
    monkeypatch.setattr(confinement, "landlock_version", lambda: version)

    assert confinement.missing_confinement() == expected


LIMITED = """
import ctypes, sys
from pathlib import Path
from neuroncore.confinement.process import limit_writes
ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)
limit_writes(Path(sys.argv[1]))
Path(sys.argv[1], "inside").write_text("1")
Path(sys.argv[2], "outside").write_text("1")
"""


@pytest.mark.skipif(not confinement.landlock_version(), reason="the kernel has no Landlock")
def test_landlock_alone_stops_writing_outside_the_folder(tmp_path: Path):
    folder, other = tmp_path / "folder", tmp_path / "other"
    folder.mkdir(), other.mkdir()

    done = subprocess.run(
        [sys.executable, "-c", LIMITED, folder, other], capture_output=True, text=True
    )

    assert (folder / "inside").exists() and not (other / "outside").exists()
    assert "PermissionError" in done.stderr


PARENT = """
import sys
from pathlib import Path
from neuroncore.confinement import process as confinement
from nki_migrate.verify.job import Job
from nki_migrate.verify.process import Children
with Children() as children:
    children.run(Job(Path(sys.argv[1]), "kernel", (), 0, ((),)))
"""


def test_an_endless_kernel_ends_with_a_parent_that_is_killed(world: Path):
    (world / "k.py").write_text(
        "import os, time\n"
        "def kernel():\n"
        "    open('pid', 'w').write(str(os.getpid()))\n"
        "    while True: time.sleep(1)\n"
    )
    environment = os.environ | {"TMPDIR": str(world)}
    parent = subprocess.Popen([sys.executable, "-c", PARENT, world / "k.py"], env=environment)
    number = int(text_of(world, "nki-verify-*/scratch/pid"))

    parent.kill()
    parent.wait()

    assert ended(number)


def text_of(folder: Path, pattern: str) -> str:
    """The text of the file that a job writes, as soon as it is there."""
    for _ in range(600):
        found = [path.read_text() for path in folder.glob(pattern)]
        if any(found):
            return found[0]
        time.sleep(0.1)
    raise AssertionError(f"no {pattern}")


def ended(pid: int) -> bool:
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    os.kill(pid, signal.SIGKILL)
    return False
