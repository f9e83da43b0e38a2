"""A stand-in for the vendor's packages and device files."""

import shutil
from pathlib import Path

import pytest

FAKE = Path(__file__).parents[1] / "fake_neuron"


@pytest.fixture
def vendor(tmp_path, monkeypatch):
    """The stand-in where this process and its workers find it; a copy that a test may change."""
    copy = tmp_path / "vendor"
    shutil.copytree(FAKE, copy)
    monkeypatch.syspath_prepend(str(copy))
    return copy


@pytest.fixture
def devices(tmp_path):
    """A folder with one device file."""
    folder = tmp_path / "dev"
    folder.mkdir()
    for name in ("neuron0", "neuron_monitor"):
        (folder / name).touch()
    return folder
