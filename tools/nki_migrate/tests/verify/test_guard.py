"""Kernels that write, connect or start programs while they are verified: blocked, with the line."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from nki_migrate.verify.guard import read_attempts

CHILD = """
import sys
from pathlib import Path
from nki_migrate.verify.guard import hold_process
hold_process(Path(sys.argv[1]), sys.argv[2], int(sys.argv[4]))
source = Path(sys.argv[2]).read_text()
exec(compile(source, sys.argv[2], "exec"), {"__name__": "k", "outside": sys.argv[3]})
"""


@pytest.fixture
def world(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "outside/folder").mkdir(parents=True)
    (tmp_path / "outside/file").write_text("kept")
    (tmp_path / "outside/link").symlink_to("file")
    return tmp_path


def state(world):
    """Everything about the folder outside: names, contents, modes and times."""
    return [
        (path, path.lstat().st_mode, path.lstat().st_mtime_ns, path.is_file() and path.read_text())
        for path in sorted((world / "outside").rglob("*"))
    ]


def attempts(world, code: str) -> tuple[tuple[str, ...], subprocess.CompletedProcess[str]]:
    """Run code under the guard: what was blocked, and how the process ended."""
    file = world / "k.py"
    file.write_text(textwrap.dedent(code))
    with (world / "attempts").open("ab") as attempts:
        number = str(attempts.fileno())
        done = subprocess.run(
            [sys.executable, "-c", CHILD, world / "run", file, world / "outside", number],
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            pass_fds=(attempts.fileno(),),
        )
    return tuple(read_attempts((world / "attempts").read_bytes())), done


WRITES = {
    "open(outside + '/new', 'w')": "writes {}/new (open)",
    "open(outside + '/file', 'r+b')": "writes {}/file (open)",
    "import os; os.open(outside + '/new', os.O_CREAT | os.O_RDWR)": "writes {}/new (open)",
    "open('../../outside/new', 'w')": "writes {}/new (open)",
    "import os; os.remove(outside + '/link')": "removes {}/link (os.remove)",
    "import os; os.rmdir(outside + '/folder')": "removes {}/folder (os.rmdir)",
    "import shutil; shutil.rmtree(outside)": "removes {} (shutil.rmtree)",
    "import os; os.rename(outside + '/file', 'mine')": "renames {}/file (os.rename)",
    "import os; open('mine', 'w'); os.replace('mine', outside + '/file')": (
        "renames {}/file (os.rename)"
    ),
    "import shutil; shutil.copy(outside + '/file', outside + '/new')": "writes {}/new (open)",
    "import os; os.mkdir(outside + '/new')": "makes {}/new (os.mkdir)",
    "import os; os.symlink('file', outside + '/new')": "links {}/new (os.symlink)",
    "import os; os.link(outside + '/file', 'mine')": "links {}/file (os.link)",
    "import os; os.symlink(outside, 'link'); open('link/new2', 'w')": "writes {}/new2 (open)",
    "import os; os.truncate(outside + '/file', 0)": "truncates {}/file (os.truncate)",
    "import os; os.chmod(outside + '/file', 0)": "changes {}/file (os.chmod)",
    "import os; f = open(outside + '/file'); os.chmod(f.fileno(), 1)": "changes {}/file (os.chmod)",
    "import os; os.utime(outside + '/file', (0, 0))": "changes {}/file (os.utime)",
    "import os; os.remove('file', dir_fd=os.open(outside, os.O_RDONLY))": (
        "removes {}/file (os.remove)"
    ),
    "import sqlite3; sqlite3.connect(outside + '/new')": "writes {}/new (sqlite3.connect)",
    "import numpy; numpy.save(outside + '/new.npy', [1])": "writes {}/new.npy (open)",
    "import os; os.chdir(outside); open('new', 'a')": "writes {}/new (open)",
}


def each_rejected(world, codes) -> tuple[str, ...]:
    """Every line of code as a file of one line each, in one process; none may succeed."""
    tried = "try:\n    {}\nexcept OSError:\n    pass\nelse:\n    raise SystemExit('done')\n"
    first = "\n"
    blocked, done = attempts(world, first + "".join(tried.format(code) for code in codes))
    assert done.returncode == 0, done.stderr
    return blocked


def line_of(position: int) -> int:
    return 3 + 6 * position


def test_nothing_outside_the_scratch_folder_is_touched(world):
    before = state(world)

    blocked = each_rejected(world, WRITES)

    assert state(world) == before
    assert blocked == tuple(
        f"{world}/k.py:{line_of(i)}: {expected.format(world / 'outside')}"
        for i, expected in enumerate(WRITES.values())
    )


OTHERS = {
    "import socket; socket.socket()": "uses a socket (socket.__new__)",
    "import socket; socket.getaddrinfo('localhost', 80)": (
        "uses a socket (socket.getaddrinfo 'localhost')"
    ),
    "import urllib.request as r; r.urlopen('http://127.0.0.1:9')": "uses a socket (socket.",
    "import subprocess; subprocess.run(['true'])": "starts a process (subprocess.Popen 'true')",
    "import os; os.system('true')": "starts a process (os.system b'true')",
    "import os; os.execv('/bin/true', ['true'])": "starts a process (os.exec '/bin/true')",
    "import os; os.fork()": "starts a process (os.fork)",
    "import os; os.posix_spawn('/bin/true', ['true'], {})": (
        "starts a process (os.posix_spawn '/bin/true')"
    ),
    "import os; os.kill(os.getppid(), 0)": "signals process ",
    "import ctypes; ctypes.CDLL(None)": "loads a C library (ctypes.dlopen)",
    "from multiprocessing import util; util.spawnv_passfds(b'/bin/true', [b'true'], [])": (
        "starts a process (nki_migrate.fork_exec"
    ),
}


def test_sockets_processes_and_c_libraries_are_rejected(world):
    blocked = each_rejected(world, OTHERS)

    for i, (attempt, expected) in enumerate(zip(blocked, OTHERS.values(), strict=True)):
        assert attempt.startswith(f"{world}/k.py:{line_of(i)}: {expected}")


def test_the_error_names_what_was_tried_and_what_may_be_done(world):
    _, done = attempts(world, "open(outside + '/new', 'w')")

    assert (
        f"BlockedError: blocked while verifying: writes {world}/outside/new (open); "
        "only the working folder may be written"
    ) in done.stderr


ALLOWED = """
import os, shutil, sqlite3, subprocess, tempfile, zipfile
import ctypes, multiprocessing, socket
import numpy

assert os.path.samefile(os.getcwd(), tempfile.gettempdir())
numpy.save("result.npy", numpy.ones(3))
os.makedirs("a/b", exist_ok=True)
os.rename("a/b", "a/c")
shutil.copytree("a", "d")
shutil.rmtree("a")
with tempfile.TemporaryDirectory() as name, tempfile.NamedTemporaryFile() as file:
    open(name + "/x", "w").write("x")
    file.write(b"x")
with open(os.devnull, "w") as nothing:
    nothing.write("x")
sqlite3.connect(":memory:").close()
os.makedirs(outside, exist_ok=True)
print(open(outside + "/file").read(), os.listdir(outside), socket.gethostname())
os.kill(os.getpid(), 0)
"""


def test_the_scratch_folder_is_free_and_reading_is_too(world):
    blocked, done = attempts(world, ALLOWED)

    assert (blocked, done.returncode) == ((), 0), done.stderr


def test_an_attempt_that_is_swallowed_or_ends_the_process_is_still_known(world):
    code = """
        import os

        for _ in range(5):
            try:
                open(outside + "/new", "w")
            except BaseException:
                pass
        os._exit(0)
    """

    blocked, done = attempts(world, code)

    assert done.returncode == 0
    assert blocked == (f"{world}/k.py:6: writes {world}/outside/new (open)",)
