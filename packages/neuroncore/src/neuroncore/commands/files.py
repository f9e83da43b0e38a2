"""Files that are written whole or not at all, and never over a file of the user's."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from glob import escape
from pathlib import Path

from neuroncore.commands.folders import new_folder, remove_abandoned
from neuroncore.errors import OptionError


class OutputError(OptionError):
    """A file that an option names cannot be written: a mistake in the options, exit code 2."""

    def __init__(self, what: str, *, expected: str | None = None) -> None:
        super().__init__(what, expected=expected)
        self.place = None  # of the command line, not of a program


@contextmanager
def naming_output(option: str, file: Path) -> Iterator[None]:
    """Raise OutputError, with the option and the file, for what prevents writing inside."""
    try:
        yield
    except (OSError, RuntimeError) as reason:  # RuntimeError: a link that leads to itself
        what = getattr(reason, "strerror", None) or reason
        raise OutputError(f"{option} {file}: {what}") from None


@contextmanager
def _aside(target: Path) -> Iterator[Path]:
    """The path for the content of `target`, in a folder beside it; what killed processes left
    there is removed."""
    remove_abandoned(target.parent, f".{escape(target.name)}.*")
    with new_folder(f".{target.name}.", target.parent) as folder:
        yield folder / target.name


def write_whole(file: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a file beside `file`, then rename it; a file keeps its mode and its links.

    A device or a pipe (/dev/null) stays what it is and gets the content. Raises OSError, and
    RuntimeError for a link that leads to itself.
    """
    if file.exists() and not file.is_file() and not file.is_dir():
        with tempfile.TemporaryDirectory() as folder:
            whole = Path(folder) / file.name
            write(whole)
            with whole.open("rb") as source, file.open("wb") as target:
                shutil.copyfileobj(source, target)
        return
    if file.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(file))
    with _aside(file) as whole:
        write(whole)
        if file.exists():
            whole.chmod(file.stat().st_mode & 0o777)
        whole.replace(file.resolve())


def write_text(file: Path, text: str) -> None:
    """`write_whole` of a text, with `\\n` as line ending; what UTF-8 has not is escaped."""
    content = text.encode(errors="backslashreplace")
    write_whole(file, lambda path: path.write_bytes(content))


def write_folder(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files into a new or empty folder, all of them or none. Raises OSError."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _aside(folder) as whole:
        whole.mkdir()
        for name, content in files.items():
            path = whole / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        whole.replace(folder)


def write_output(program: str, option: str, file: Path, text: str) -> None:
    """`write_text` of what `option` of a command requests, and a line on stderr that names it.

    Raises OutputError.
    """
    with naming_output(option, file):
        write_text(file, text)
    sys.stderr.write(f"{program}: {option} wrote {file}\n")


class ReservedOutput:
    """A file of an option that is written after a program has run.

    Links that the program makes do not lead to another file. Raises OutputError.
    """

    def __init__(self, option: str, file: Path) -> None:
        check_writable(file, option)
        self._option, self._file, self._absolute = option, file, file.absolute()
        with naming_output(option, file):
            self._identity = _identity(file)

    def write(self, program: str, text: str) -> None:
        """Write it, and a line on stderr that names it."""
        found = self._identity
        target = found if isinstance(found, Path) else self._absolute
        with naming_output(self._option, self._file):
            if _identity(target) != found:
                raise OSError("the program has put another file there")
            write_text(target, text)
        sys.stderr.write(f"{program}: {self._option} wrote {self._file}\n")


def _identity(file: Path) -> Path | tuple[int, int]:
    """The path of a file without links; of a device or pipe, which one it is."""
    if file.is_file() or not file.exists():
        return file.resolve()
    found = file.stat()
    return found.st_dev, found.st_ino


def check_writable(file: Path, option: str) -> None:
    """Whether `option` may write or replace a file. Raises OutputError."""
    if not file.parent.is_dir():
        raise OutputError(f"{option} {file}: no such folder {file.parent}")
    if file.is_dir():
        raise OutputError(f"{option} {file}: this is a folder", expected="a file to write")
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise OutputError(f"{option} {file}: it may not be written")


def check_output(file: Path, option: str, mark: str, force: bool, tool: str) -> None:
    """Whether a generated file may be written there: only over one that begins with `mark`.

    Raises OptionError.
    """
    if not file.parent.is_dir():
        raise OptionError(f"{option} {file}: no such folder {file.parent}")
    if file.is_dir():
        raise OptionError(f"{option} {file} is a folder", expected="a file to write")
    if file.is_file() and not force and not _begins_with(file, mark):
        raise OptionError(
            f"{option} {file} is there and was not {tool}",
            expected=f"no file, or one of {mark!r}", hint="--force writes over it",
        )  # fmt: skip


def _begins_with(file: Path, mark: str) -> bool:
    with file.open("rb") as stream:
        return stream.read(len(mark)) == mark.encode()
