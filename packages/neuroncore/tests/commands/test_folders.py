"""Folders of runs: removed at the end, and by the next run where a process was killed."""

import os
import subprocess
import sys
import time

import pytest

from neuroncore.commands.folders import locked, new_folder, remove_abandoned

OWNER = """
import sys, time
from pathlib import Path
from neuroncore.commands.folders import new_folder
with new_folder("run-", Path(sys.argv[1])) as folder:
    (folder / "content").touch()
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def owner(tmp_path):
    command = [sys.executable, "-c", OWNER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_a_folder_is_removed_at_the_end(tmp_path):
    with new_folder("run-", tmp_path) as folder:
        (folder / "content").touch()

    assert [*tmp_path.iterdir()] == []


def test_a_folder_is_removed_once_its_owner_was_killed(owner, tmp_path):
    (folder,) = tmp_path.iterdir()
    remove_abandoned(tmp_path, "run-*")
    assert (folder / "content").exists()
    owner.kill()
    owner.wait()

    remove_abandoned(tmp_path, "other-*")
    assert folder.exists()
    remove_abandoned(tmp_path, "run-*")
    assert not folder.exists()


def test_a_folder_that_another_process_has_locked_stays(owner, tmp_path):
    (folder,) = tmp_path.iterdir()

    with locked(folder):
        owner.kill()
        owner.wait()
        remove_abandoned(tmp_path, "run-*")
        assert folder.exists()
    remove_abandoned(tmp_path, "run-*")
    assert not folder.exists()


def test_folders_of_others_stay(tmp_path):
    (tmp_path / "run-1").mkdir()

    remove_abandoned(tmp_path, "run-*")

    assert (tmp_path / "run-1").exists()


@pytest.mark.parametrize(
    ("age_s", "others", "remains"),
    [(3600, [], False), (0, [], True), (3600, ["of_a_user"], True)],
    ids=["old", "new", "with a file"],
)
def test_a_folder_whose_owner_was_killed_before_it_locked_it_is_removed(
    tmp_path, age_s, others, remains
):
    folder = tmp_path / "run-killed"
    folder.mkdir()
    for name in ("new", *others):
        (folder / name).touch()
    os.utime(folder / "new", (time.time() - age_s,) * 2)

    remove_abandoned(tmp_path, "run-*")

    assert folder.exists() is remains
