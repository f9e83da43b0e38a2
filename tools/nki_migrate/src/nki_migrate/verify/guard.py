"""Permissions of user code under verification: its own scratch folder, nothing else.

A guard against kernels and helpers that write, connect or start programs as a habit, made of
Python's audit events (PEP 578), which names the line that tried. It is not a security boundary:
what circumvents it is stopped by `confinement` on Linux, and by nothing elsewhere.
"""

from __future__ import annotations

import json
import os
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import source_from_cache
from pathlib import Path
from types import FrameType
from typing import Any

from neuroncore.confinement.printable_text import printable

SCRATCH, READ_FILE = "scratch", "read.json"
BLOCKED = "blocked while verifying"
_MOST_RECORDED = 100
_LONGEST_DETAIL = 80
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_NO_FOLDER = -1

# event → verb, position of each path, position of the folder descriptor of each path
_PATHS: Mapping[str, tuple[str, tuple[int, ...], tuple[int, ...]]] = {
    "os.remove": ("removes", (0,), (1,)),
    "os.rmdir": ("removes", (0,), (1,)),
    "os.mkdir": ("makes", (0,), (2,)),
    "os.rename": ("renames", (0, 1), (2, 3)),
    "os.link": ("links", (0, 1), (2, 3)),
    "os.symlink": ("links", (1,), (2,)),
    "os.truncate": ("truncates", (0,), ()),
    "os.chmod": ("changes", (0,), (2,)),
    "os.chown": ("changes", (0,), (3,)),
    "os.chflags": ("changes", (0,), ()),
    "os.utime": ("changes", (0,), (3,)),
    "os.setxattr": ("changes", (0,), ()),
    "os.removexattr": ("changes", (0,), ()),
    "shutil.rmtree": ("removes", (0,), (1,)),
    "sqlite3.connect": ("writes", (0,), ()),
}
_OF_A_LINK_ITSELF = ("os.remove", "os.rmdir", "os.mkdir", "os.rename", "os.link", "os.symlink")
_PROCESSES = (
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.spawn",
    "os.startfile",
    "os.system",
    "pty.spawn",
    "subprocess.Popen",
    "nki_migrate.fork_exec",
)
_C_LIBRARIES = {"ctypes.dlopen": "loads a C library", "ctypes.dlsym": "calls a C function"}
_HARMLESS_SOCKETS = ("socket.gethostname",)


class BlockedError(PermissionError):
    """User code tried what it may not do while it is verified."""


def hold_process(folder: Path, file: str, attempts: int) -> Guard:
    """Hold this process, for the rest of its life, to writing into `folder` only.

    The working folder and the temporary folder become `folder/scratch`. What is blocked raises
    BlockedError in the code that tried, and is written to the descriptor `attempts` with the line
    of `file` that led to it, in spite of what that code does with the error.
    """
    scratch = folder / SCRATCH
    scratch.mkdir()
    for name in ("TMPDIR", "TEMP", "TMP", "XDG_CACHE_HOME", "MPLCONFIGDIR"):
        os.environ[name] = str(scratch)
    os.chdir(scratch)
    _announce_fork_exec()
    guard = Guard(folder, file, attempts)
    sys.addaudithook(guard)
    return guard


def read_attempts(written: bytes) -> list[str]:
    """Blocked acts that a guard has written, in order; each once."""
    lines = written.decode(errors="replace").split("\n")
    return [*dict.fromkeys(filter(None, map(printable, lines)))]


def _announce_fork_exec() -> None:
    """`multiprocessing` starts programs by a function that raises no audit event."""
    with suppress(ImportError):
        import _posixsubprocess

        original = _posixsubprocess.fork_exec

        def fork_exec(*given: Any) -> Any:
            sys.audit("nki_migrate.fork_exec", *given[:1])
            return original(*given)

        _posixsubprocess.fork_exec = fork_exec


class Guard:
    """The audit hook of `hold_process`."""

    def __init__(self, folder: Path, file: str, attempts: int) -> None:
        self._folder, self._file, self._attempts = folder.resolve(), file, attempts
        self._libraries = _library_folders()
        self._recorded: set[str] = set()
        self._read: set[str] = set()

    def write_read(self) -> None:
        """Write what `read_files` reads, at the end of the run."""
        (self._folder / READ_FILE).write_text(json.dumps(sorted(self._read)), encoding="utf-8")

    def __call__(self, event: str, given: tuple[Any, ...]) -> None:
        """The audit hook: returns for what is allowed, raises BlockedError for the rest."""
        if event == "open":
            self._open(*given)
        elif event in _PATHS:
            self._paths(event, given)
        elif event in _PROCESSES:
            self._block("starts a process", event, given)
        elif event.startswith("socket.") and event not in _HARMLESS_SOCKETS:
            self._block("uses a socket", event, given)
        elif event in ("os.kill", "os.killpg") and given[0] not in (0, os.getpid()):
            self._block(f"signals process {given[0]}", event, ())
        elif event in _C_LIBRARIES and not self._is_a_librarys_doing():
            self._block(_C_LIBRARIES[event], event, given)

    def _open(self, path: Any, mode: str | None, flags: int) -> None:
        if not flags & _WRITING:
            self._note_read(path)
        elif outside := self._outside(path):
            self._block(f"writes {outside}", "open", ())

    def _note_read(self, path: Any) -> None:
        whole = None if isinstance(path, int) else _whole(path, _NO_FOLDER)
        if whole is None or self._is_library(str(whole)) or whole.is_relative_to(self._folder):
            return
        if whole.suffix == ".pyc":
            with suppress(ValueError):
                whole = Path(source_from_cache(str(whole)))
        self._read.add(str(whole))

    def _paths(self, event: str, given: Sequence[Any]) -> None:
        verb, positions, folders = _PATHS[event]
        if event == "sqlite3.connect" and given[0] in (":memory:", b":memory:", ""):
            return
        for i, position in enumerate(positions):
            folder = given[folders[i]] if i < len(folders) else _NO_FOLDER
            outside = self._outside(given[position], folder, event in _OF_A_LINK_ITSELF)
            if outside and not (event == "os.mkdir" and Path(outside).is_dir()):
                self._block(f"{verb} {outside}", event, ())

    def _outside(self, path: Any, folder: Any = _NO_FOLDER, itself: bool = False) -> str | None:
        """The whole path if it lies outside the scratch folder; None for one inside."""
        whole = _whole(path, folder)
        if whole is None:
            return None
        real = whole.parent.resolve() / whole.name if itself else whole.resolve()
        is_inside = real.is_relative_to(self._folder)
        return None if is_inside or str(real) == os.devnull else str(real)

    def _block(self, what: str, event: str, given: Sequence[Any]) -> None:
        text = f"{what} ({' '.join([event, *_detail(given)])})"
        attempt = f"{self._where()}{text}"
        if attempt not in self._recorded and len(self._recorded) < _MOST_RECORDED:
            self._recorded.add(attempt)
            self._report(attempt)
        raise BlockedError(f"{BLOCKED}: {text}; only the working folder may be written")

    def _report(self, attempt: str) -> None:
        """Write an attempt: code that closes the descriptor ends the process."""
        try:
            os.write(self._attempts, f"{printable(attempt)}\n".encode())
        except BlockingIOError:
            return  # a pipe full of attempts
        except OSError:
            os._exit(1)

    def _where(self) -> str:
        """The deepest line of the user's file, or of another file outside libraries."""
        theirs = [frame for frame in _frames() if not self._is_library(frame.f_code.co_filename)]
        own = [frame for frame in theirs if frame.f_code.co_filename == self._file]
        frame = next(iter(own or theirs), None)
        return f"{frame.f_code.co_filename}:{frame.f_lineno}: " if frame else ""

    def _is_a_librarys_doing(self) -> bool:
        """Whether the frame that loads a C library is an installed package's, not the user's."""
        names = (frame.f_code.co_filename for frame in _frames())
        caller = next((name for name in names if "ctypes" not in Path(name).parts), "")
        return self._is_library(caller)

    def _is_library(self, filename: str) -> bool:
        return filename.startswith(self._libraries)


def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    folders = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    own = str(Path(__file__).resolve().parents[1])
    return ("<frozen", *(folder + os.sep for folder in sorted({*folders, own})))


def _frames() -> Iterator[FrameType]:
    """The frames of user code and libraries below the audit hook, the innermost first."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename != __file__:
            yield frame
        frame = frame.f_back


def _whole(path: Any, folder: Any) -> Path | None:
    """An absolute path; None where the system does not say what a descriptor refers to."""
    if isinstance(path, int):
        return _path_of(path)
    name = Path(os.fsdecode(path))
    if name.is_absolute() or not isinstance(folder, int) or folder == _NO_FOLDER:
        return Path.cwd() / name
    base = _path_of(folder)
    return None if base is None else base / name


def _path_of(descriptor: int) -> Path | None:
    with suppress(OSError):
        found = Path(f"/proc/self/fd/{descriptor}").readlink()
        return found if found.is_absolute() else None  # "pipe:[…]" is not a file
    return None


def _detail(given: Sequence[Any]) -> list[str]:
    """The first argument of an event that says something to the user: a name, an address."""
    telling = (value for value in given if isinstance(value, str | bytes | tuple | list))
    return [repr(value)[:_LONGEST_DETAIL] for value in [*telling][:1]]
