"""Every command that runs a file of the user's runs it in a confined process."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from neuroncore.confinement.process import landlock_version
from neuroncore.confinement.supervision import CONFINED

pytestmark = pytest.mark.skipif(not landlock_version(), reason="the kernel has no Landlock")

BIN = Path(sys.executable).parent
WRITES = """
import contextlib
with contextlib.suppress(OSError):
    open({outside!r}, "w")
"""
FUNCTION = "def double(x):\n    return x + x\n"
KERNEL = """
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def copy(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
"""
COMMANDS = {
    "nki-run": (KERNEL, "nki-run", "k.py"),
    "nki-run of a function": (KERNEL, "nki-run", "k.py:copy", "f32[4,4]"),
    "nki-run -m": (KERNEL, "nki-run", "-m", "k"),
    "nkigen": (FUNCTION, "nkigen", "k.py:double", "--spec", "f32[4,4]"),
    "tokenplan explain": (KERNEL, "tokenplan", "explain", "k.py:copy", "--spec", "f32[4,4]"),
    "nkigym tune": (
        FUNCTION, "nkigym", "tune", "k.py:double", "--spec", "f32[128,8]", "--budget", "2",
    ),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The working folder: beside it nothing may be written, so temporary files are in it."""
    made = tmp_path / "work"
    made.mkdir()
    return made


def environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != CONFINED}
    return kept | {"TMPDIR": str(folder)}


def run(folder: Path, *words: str, text: str = "", **variables: str):
    (folder / "k.py").write_text(text)
    return subprocess.run(
        [BIN / words[0], *words[1:]], cwd=folder, env=environment(folder) | variables,
        capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.parametrize(("text", "command", "words"), [
    pytest.param(text, command, words, id=name)
    for name, (text, command, *words) in COMMANDS.items()
])  # fmt: skip
def test_a_file_that_writes_outside_changes_nothing_and_fails_the_run(folder, text, command, words):
    outside = folder.parent / "outside"

    done = run(folder, command, *words, text=WRITES.format(outside=str(outside)) + text)

    assert done.returncode == 1, done.stderr
    assert f"{command}: the program may not do this: writes {outside} (openat)" in done.stderr
    assert "--unconfined allows everything" in done.stderr
    assert not outside.exists()


def test_an_unconfined_run_writes_where_it_likes(folder):
    outside = folder.parent / "outside"

    done = run(folder, "nki-run", "--unconfined", "k.py", text=WRITES.format(outside=str(outside)))

    assert (done.returncode, done.stderr) == (0, "")
    assert outside.exists()


HOSTILE = """
import contextlib, ctypes, fcntl, os, resource, signal, socket, struct
victim, outside, libc = int(os.environ["NKI_VICTIM"]), {outside!r}, ctypes.CDLL(None)

def owned():
    ours, theirs = socket.socketpair()
    fcntl.fcntl(ours, fcntl.F_SETOWN, victim)

for attempt in (
    lambda: os.setpriority(os.PRIO_PROCESS, victim, 19),
    lambda: os.sched_setaffinity(victim, [0]),
    lambda: os.sched_setscheduler(victim, os.SCHED_IDLE, os.sched_param(0)),
    lambda: resource.prlimit(victim, resource.RLIMIT_NOFILE, (3, 3)),
    owned,
    lambda: libc.shmget(0x25, 4096, 0o1600),
    lambda: libc.syscall(56 if os.uname().machine == "x86_64" else 220, 0x10000011, 0, 0, 0, 0),
    lambda: fcntl.ioctl(os.open(outside, os.O_RDONLY), 0x40086602, struct.pack("l", 0x80)),
    lambda: print(open(f"/proc/{{victim}}/environ").read()),
    lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1)),
):
    with contextlib.suppress(OSError, ValueError):
        attempt()
"""
ATTEMPTS = (
    "changes a process (setpriority)", "changes a process (sched_setaffinity)",
    "changes a process (sched_setscheduler)", "changes a process (prlimit64)",
    "signals a process (fcntl)", "uses memory or messages of other processes (shmget)",
    "makes a namespace (clone)", "changes {outside} (ioctl)",
)  # fmt: skip


def test_other_processes_and_flags_of_files_stay_as_they_are(folder):
    outside = folder.parent / "outside"
    outside.touch()
    with subprocess.Popen(["sleep", "100"], env={"SECRET": "1"}) as victim:
        priority = os.getpriority(os.PRIO_PROCESS, victim.pid)
        done = run(folder, "nki-run", "k.py", text=HOSTILE.format(outside=str(outside)),
                   NKI_VICTIM=str(victim.pid))  # fmt: skip
        after = os.getpriority(os.PRIO_PROCESS, victim.pid)
        victim.kill()

    assert (done.returncode, done.stdout, after) == (1, "", priority), done.stderr
    assert [line.partition("this: ")[2].partition(";")[0] for line in done.stderr.splitlines()] == [
        attempt.format(outside=outside) for attempt in ATTEMPTS
    ]


TYPES = """
import contextlib, fcntl, termios
with contextlib.suppress(OSError):
    fcntl.ioctl(0, termios.TIOCSTI, b"x")
"""


def test_nothing_is_typed_into_the_terminal(folder):
    (folder / "k.py").write_text(TYPES)
    process, terminal = pty.fork()
    if not process:
        os.chdir(folder)
        os.execve(BIN / "nki-run", ["nki-run", "k.py"], environment(folder))
    shown = b"".join(iter(lambda: _read(terminal), b"")).decode()

    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 1
    assert "may not do this: types into the terminal (ioctl)" in shown


RENAMED = r"""
import ctypes, os, signal
ours, theirs = os.pipe()
child = os.fork()
if not child:
    ctypes.CDLL(None).prctl(15, b"\xff\xfe", 0, 0, 0)
    os.write(theirs, b"1")
    signal.pause()
os.read(ours, 1)
os.kill(child, signal.SIGKILL)
print(os.waitpid(child, 0)[1])
"""


def test_a_process_may_have_any_name(folder):
    done = run(folder, "nki-run", "k.py", text=RENAMED)

    assert (done.returncode, done.stdout, done.stderr) == (0, "9\n", "")


FORKS = """
import os, time
for _ in range(600):
    try:
        if not os.fork():
            time.sleep(100)
    except PermissionError:
        break
"""


@pytest.mark.thorough
def test_the_number_of_processes_is_limited_for_root_too(folder):
    done = run(folder, "nki-run", "k.py", text=FORKS)

    assert done.returncode == 1
    assert "starts too many processes (clone)" in done.stderr


ORDINARY = """
import os, subprocess, sys, tempfile, threading
from concurrent.futures import ThreadPoolExecutor
open("mine", "w").write("1")
tempfile.TemporaryFile().write(b"1")
assert subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True).stdout == b"1\\n"
child = subprocess.Popen(["sleep", "100"]); os.setpriority(os.PRIO_PROCESS, child.pid, 5)
child.terminate(); child.wait(); os.nice(1); os.sched_setaffinity(0, os.sched_getaffinity(0))
thread = threading.Thread(target=lambda: os.sched_setaffinity(threading.get_native_id(), {0}))
thread.start(); thread.join()
print([*ThreadPoolExecutor(2).map(abs, [-1, -2])], os.environ["ROWS"], os.environ["LANG"])
sys.exit(7)
"""


def test_files_processes_threads_variables_and_the_exit_code_are_the_programs(folder):
    done = run(folder, "nki-run", "--env", "ROWS", "k.py", text=ORDINARY, ROWS="3", LANG="C")

    assert (done.returncode, done.stdout, done.stderr) == (7, "[1, 2] 3 C\n", "")
    assert (folder / "mine").read_text() == "1"


def test_a_variable_that_is_withheld_is_named_once_where_the_program_reads_it(folder):
    text = "import os\nprint(os.getenv('ROWS', 1), 'ROWS' in os.environ, os.getenv('COLS'))"

    done = run(folder, "nki-run", "k.py", text=text, ROWS="3", A_TOKEN="secret")

    assert (done.returncode, done.stdout) == (0, "1 False None\n")
    assert done.stderr == (
        "nki-run: the program reads the variable ROWS, which is withheld; --env ROWS passes it on\n"
    )


READS = """
import os
memory = open("/proc/self/mem", "rb", 0)
secret, copies = bytes(map(ord, reversed("2retnuh-terces-zz"))), []
for line in open("/proc/self/maps"):
    if "r" in line.split()[1] and "[v" not in line:
        start, end = (int(number, 16) for number in line.split()[0].split("-"))
        memory.seek(start)
        text = memory.read(end - start)
        at = text.find(secret)
        while at >= 0:
            copies.append(text[max(0, at - 12) : at])
            at = text.find(secret, at + 1)
parent = os.getppid()
grandparent = open(f"/proc/{parent}/stat").read().rpartition(")")[2].split()[1]
places = ["self", f"self/task/{os.getpid()}", "thread-self", parent, grandparent]
for place in places:
    try:
        text = open(f"/proc/{place}/environ", "rb").read()
    except OSError:
        text = b""
    print(b"hunter2" in text, b"PATH" in text)
print(sum(before.endswith((b"A_TOKEN=", b"OTHER=")) for before in copies), len(copies))
"""


@pytest.mark.parametrize("size", [0, 3000])
@pytest.mark.parametrize("is_first", [True, False])
def test_withheld_variables_are_nowhere_in_the_memory_of_the_processes(folder, size, is_first):
    """The program's own copy of the text is the only one, wherever the variables are."""
    token = {"A_TOKEN": "zz-secret-hunter2", "OTHER": "x" * size + "zz-secret-hunter2"}
    env = token | environment(folder) if is_first else environment(folder) | token
    (folder / "k.py").write_text(READS)

    done = subprocess.run(
        [BIN / "nki-run", "k.py"], cwd=folder, env=env, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    *places, copies = done.stdout.split("\n")[:-1]
    assert places[:3] == ["False True"] * 3
    assert all(place.startswith("False") for place in places)
    assert int(copies.split()[0]) == 0
    assert int(copies.split()[1]) <= 1


def test_a_variable_that_the_program_sets_itself_is_its_own(folder):
    text = "import os\nos.environ['ROWS'] = '4'\nprint(os.environ['ROWS'])"

    done = run(folder, "nki-run", "k.py", text=text, ROWS="3")

    assert (done.stdout, done.stderr) == ("4\n", "")


def test_the_file_that_an_option_names_is_written(folder):
    trace = folder.parent / "t.svg"

    done = run(folder, "nki-run", "--trace", str(trace), "k.py:copy", "f32[4,4]", text=KERNEL)

    assert done.returncode == 0, done.stderr
    assert trace.read_text().startswith("<svg")


REOPENS = """
for name in ("/dev/stdout", "/dev/stderr", "/dev/null", "/dev/fd/1", "/proc/self/fd/2"):
    with open(name, "a") as stream:
        stream.write(f"to {name}\\n")
"""


@pytest.mark.parametrize("kind", ["pipe", "file", "terminal"])
def test_the_standard_streams_can_be_opened_again(folder, kind):
    (folder / "k.py").write_text(REOPENS)
    if kind == "terminal":
        ours, stream = pty.openpty()
    else:
        ours, stream = os.pipe()
    if kind == "file":
        stream = os.open(folder.parent / "said", os.O_RDWR | os.O_CREAT)
    process = subprocess.run(
        [BIN / "nki-run", "k.py"], cwd=folder, env=environment(folder), stdin=subprocess.DEVNULL,
        stdout=stream, stderr=stream,
    )  # fmt: skip
    shown = os.pread(stream, 4096, 0) if kind == "file" else os.read(ours, 4096)

    assert process.returncode == 0, shown
    assert shown.decode().split() == [
        word for name in ("/dev/stdout", "/dev/stderr", "/dev/fd/1", "/proc/self/fd/2")
        for word in ("to", name)
    ]  # fmt: skip


def test_a_descriptor_for_reading_is_not_opened_for_writing(folder):
    outside = folder.parent / "outside"
    outside.write_text("kept")
    text = f"a = open({str(outside)!r})\nopen(f'/dev/fd/{{a.fileno()}}', 'w')"

    done = run(folder, "nki-run", "k.py", text=text)

    assert f"may not do this: writes {outside} (openat)" in done.stderr
    assert outside.read_text() == "kept"


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("import os; os.kill(os.getpid(), 11)", 139, "the program was ended by SIGSEGV"),
        ("import os; os.abort()", 134, "the program was ended by SIGABRT"),
        ("import ctypes; ctypes.CDLL(None).syscall(0x40000000 + 39)", 159,
         "the program may not do this: calls the system as another architecture; --unconfined "
         "allows everything"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", 143, None),
    ],
    ids=["fault", "abort", "forbidden call", "terminated"],
)  # fmt: skip
def test_the_signal_that_ends_a_program_is_named(folder, text, code, said):
    done = run(folder, "nki-run", "k.py", text=text)

    assert done.returncode == code
    assert done.stderr == ("" if said is None else f"nki-run: {said}\n")


def test_an_endless_program_is_stopped_at_its_limit(folder):
    done = run(folder, "nki-run", "--timeout", "1", "k.py", text="while True: pass")

    assert (done.returncode, done.stderr) == (
        137,
        "nki-run: stopped after 1 s; --timeout allows more\n",
    )


def test_memory_is_limited(folder):
    done = run(folder, "nki-run", "--memory", "512", "k.py", text="bytearray(1 << 30)")

    assert done.returncode == 1
    assert "MemoryError" in done.stderr


def test_shared_memory_is_limited(folder):
    done = run(
        folder, "nki-run", "--memory", "512", "k.py", text="import mmap; mmap.mmap(-1, 16 << 30)"
    )

    assert done.returncode == 1
    assert "Cannot allocate memory" in done.stderr


ENDLESS = """
import os, subprocess, time
child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
open("ids", "w").write(f"{os.getpid()} {child.pid}\\n")
try:
    time.sleep(1000)
except KeyboardInterrupt:
    open("interrupted", "w")
    raise
"""


def started(folder: Path) -> tuple[subprocess.Popen[bytes], list[int]]:
    (folder / "k.py").write_text(ENDLESS)
    process = subprocess.Popen([BIN / "nki-run", "k.py"], cwd=folder, env=environment(folder),
                               stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    ids = folder / "ids"
    until(lambda: ids.exists() and ids.read_text().endswith("\n"))
    return process, [*map(int, ids.read_text().split())]


def until(holds) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def is_running(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_the_program_and_what_it_has_started_end_with_a_command_that_is_killed(folder):
    process, ids = started(folder)

    process.kill()
    process.wait()

    until(lambda: not any(map(is_running, ids)))


def test_the_program_and_what_it_has_started_end_with_a_supervisor_that_is_killed(folder):
    process, ids = started(folder)
    (supervisor,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()

    os.kill(int(supervisor), signal.SIGKILL)

    assert process.wait() == 137
    assert not any(map(is_running, ids))


def test_what_the_program_has_started_ends_with_it(folder):
    process, (program, child) = started(folder)

    os.kill(program, signal.SIGKILL)

    assert process.wait() == 137
    assert not is_running(child)


def test_an_interruption_of_the_command_reaches_the_program_once(folder):
    process, ids = started(folder)

    process.send_signal(signal.SIGINT)

    assert process.wait() == 130
    assert (folder / "interrupted").exists()
    assert not any(map(is_running, ids))


def test_a_debugger_reads_the_terminal(folder):
    (folder / "k.py").write_text("x = 41\nbreakpoint()\nx = 0\n")
    ours, theirs = pty.openpty()
    with subprocess.Popen([BIN / "nki-run", "k.py"], cwd=folder, env=environment(folder),
                          stdin=theirs, stdout=theirs, stderr=theirs) as process:  # fmt: skip
        os.close(theirs)
        os.write(ours, b"p x + 1\nc\n")
        shown = b"".join(iter(lambda: _read(ours), b""))
    os.close(ours)

    assert process.returncode == 0
    assert b"(Pdb) 42" in shown or b"\n42" in shown


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # the other end is closed
        return b""
