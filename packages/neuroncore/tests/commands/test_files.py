"""Files that a killed process has left beside others are removed by the next one."""

from __future__ import annotations

import os
import subprocess
import sys

from neuroncore.commands.files import write_folder, write_text


def ended_process() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def test_a_file_that_a_killed_process_left_is_removed(tmp_path):
    ours, theirs = (tmp_path / f".r.json.{n}.part" for n in (ended_process(), os.getppid()))
    other = tmp_path / f".s.json.{ended_process()}.part"
    for file in (ours, theirs, other):
        file.touch()

    write_text(tmp_path / "r.json", "{}")

    assert {*tmp_path.iterdir()} == {tmp_path / "r.json", theirs, other}


def test_a_folder_that_a_killed_process_left_is_removed(tmp_path):
    left = tmp_path / f".made.{ended_process()}.part"
    left.mkdir()
    (left / "file").touch()

    write_folder(tmp_path / "made", {"a/b": "text"})

    assert {*tmp_path.iterdir()} == {tmp_path / "made"}
    assert (tmp_path / "made/a/b").read_text() == "text"
