"""Files are whole at every moment, and keep what is theirs."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from nki_migrate.files.writing import ChangedMeanwhileError, replace_file, write_file


def test_a_replaced_file_keeps_its_mode(tmp_path):
    path = tmp_path / "k.py"
    path.write_bytes(b"old")
    path.chmod(0o751)

    replace_file(path, b"old", b"new")

    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o751


def test_a_link_keeps_pointing_and_its_target_is_written(tmp_path):
    (tmp_path / "real.py").write_bytes(b"old")
    link = tmp_path / "link.py"
    link.symlink_to("real.py")

    replace_file(link, b"old", b"new")

    assert link.is_symlink()
    assert (tmp_path / "real.py").read_bytes() == b"new"


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path):
    path = tmp_path / "k.py"
    path.write_bytes(b"edited in the meantime")

    with pytest.raises(ChangedMeanwhileError, match="changed while it was being migrated"):
        replace_file(path, b"old", b"new")

    assert path.read_bytes() == b"edited in the meantime"


def test_a_failed_write_leaves_no_temporary(tmp_path, monkeypatch):
    path = tmp_path / "k.py"
    path.write_bytes(b"old")
    monkeypatch.setattr(Path, "replace", lambda self, target: (_ for _ in ()).throw(OSError("no")))

    with pytest.raises(OSError, match="no"):
        replace_file(path, b"old", b"new")

    assert [*tmp_path.iterdir()] == [path]
    assert path.read_bytes() == b"old"


@pytest.fixture
def interruptible():
    """Ctrl-C as in a terminal; a job in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interruption_waits_until_the_file_is_in_place(tmp_path, monkeypatch):
    path = tmp_path / "k.py"
    path.write_bytes(b"old")
    fsync = os.fsync

    def interrupt_and_sync(handle: int) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", interrupt_and_sync)
    with pytest.raises(KeyboardInterrupt):
        replace_file(path, b"old", b"new")

    assert [*tmp_path.iterdir()] == [path]
    assert path.read_bytes() == b"new"


def test_folders_of_an_output_file_are_made(tmp_path):
    write_file(tmp_path / "a/b/k.py", b"new")

    assert (tmp_path / "a/b/k.py").read_bytes() == b"new"


def test_what_a_killed_run_has_left_is_removed(tmp_path):
    dies = "import os; from neuroncore.commands.folders import new_folder\n"
    dies += "with new_folder('.nki-migrate-'): os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", dies], env=os.environ | {"TMPDIR": str(tmp_path)})
    running = tmp_path / ".nki-migrate-of-a-user"
    running.mkdir()
    assert len([*tmp_path.iterdir()]) == 2
    file = tmp_path / "k.py"

    write_file(file, b"x = 1\n")

    assert {*tmp_path.iterdir()} == {file, running}
