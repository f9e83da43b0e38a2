"""Files that a killed process has left beside others are removed by the next one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from neuroncore.commands.files import (
    OutputError,
    ReservedOutput,
    write_folder,
    write_text,
    write_whole,
)

DIES = """
import os, signal
from pathlib import Path
from neuroncore.commands.files import write_whole
write_whole(Path({file!r}), lambda path: (path.write_text("half"), os.kill(os.getpid(), 9)))
"""


def killed_while_writing(file: Path) -> Path:
    """What a process leaves beside `file`."""
    before = {*file.parent.iterdir()}
    done = subprocess.run([sys.executable, "-c", DIES.format(file=str(file))])
    assert done.returncode == -signal.SIGKILL
    (left,) = {*file.parent.iterdir()} - before
    return left


def test_what_a_killed_process_left_is_removed(tmp_path):
    other = killed_while_writing(tmp_path / "s.json")
    killed_while_writing(tmp_path / "r.json")

    write_text(tmp_path / "r.json", "{}")

    assert {*tmp_path.iterdir()} == {tmp_path / "r.json", other}


def test_what_another_process_is_writing_stays(tmp_path):
    """Also one whose number is not known here, of another container or machine."""
    file, found = tmp_path / "r.json", []

    def write(path: Path) -> None:
        write_text(file, "of another")
        found.append(path.parent.exists())
        path.write_text("last")

    write_whole(file, write)

    assert found == [True]
    assert file.read_text() == "last"
    assert {*tmp_path.iterdir()} == {file}


@pytest.mark.parametrize("name", [".r.json.2024.part", ".r.json.4711", ".r.json.abcd1234"])
def test_files_and_folders_of_the_user_stay(tmp_path, name):
    (tmp_path / name).mkdir()
    (tmp_path / name / "mine").touch()
    (tmp_path / f"{name}.part").touch()

    write_text(tmp_path / "r.json", "{}")

    assert (tmp_path / name / "mine").exists()
    assert (tmp_path / f"{name}.part").exists()


def test_no_process_is_signalled(tmp_path, monkeypatch):
    """Within a confined process that would be reported as an attempt of the program."""
    (tmp_path / f".r.json.{os.getppid()}.part").touch()
    monkeypatch.setattr(os, "kill", None)

    write_text(tmp_path / "r.json", "{}")

    assert (tmp_path / "r.json").read_text() == "{}"


def test_a_folder_is_written_whole(tmp_path):
    write_folder(tmp_path / "made", {"a/b": "text"})

    assert {*tmp_path.iterdir()} == {tmp_path / "made"}
    assert (tmp_path / "made/a/b").read_text() == "text"
    assert (tmp_path / "made").stat().st_mode == tmp_path.joinpath("made/a").stat().st_mode


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_that_a_program_has_replaced_is_not_written(tmp_path):
    pipe, other = tmp_path / "pipe", tmp_path / "other"
    os.mkfifo(pipe)
    os.mkfifo(other)
    output = ReservedOutput("-o", pipe)
    pipe.unlink()
    pipe.symlink_to(other)

    with pytest.raises(OutputError, match="the program has put another file there"):
        output.write("tool", "text")
