"""Files that options name: different ones, and none that has to be kept."""

import pytest
from packages.nkigym.tests import tuning_kernels

from nkigym import tune
from nkigym.cli import main


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "found.db"
    tune(tuning_kernels.softmax, "f32[256,128]", budget=5, store=path)
    return path


@pytest.fixture
def kernel(tmp_path):
    path = tmp_path / "k.py"
    path.write_text("def f(x):\n    return x * 2.0\n")
    return path


def rejection(capsys, *words):
    with pytest.raises(SystemExit, match="2"):
        main([*map(str, words)])
    return capsys.readouterr().err


@pytest.mark.parametrize("option", ["-o", "--report"])
def test_a_search_writes_over_no_file_that_it_uses(option, kernel, store, tmp_path, capsys):
    words = ("tune", f"{kernel}:f", "--spec", "f32[128,64]", "--budget", "2", "--force")
    new, link = tmp_path / "new", tmp_path / "link"
    link.symlink_to(store)
    before = kernel.read_bytes(), store.read_bytes()

    assert f"{option} {new} is the store as well" in rejection(
        capsys, *words, "--store", new, option, new
    )
    assert f"{option} {kernel} is the kernel as well" in rejection(capsys, *words, option, kernel)
    assert f"{option} {store} is a store" in rejection(capsys, *words, option, store)
    assert f"{option} {link} is a store" in rejection(capsys, *words, option, link)
    assert not new.exists()
    assert (kernel.read_bytes(), store.read_bytes()) == before


def test_two_options_name_two_files(kernel, tmp_path, capsys):
    words = ("tune", f"{kernel}:f", "--spec", "f32[128,64]", "--budget", "2")
    new = tmp_path / "new"

    said = rejection(capsys, *words, "-o", new, "--report", tmp_path / "." / "new")

    assert f"-o {new} is --report as well" in said


def test_fitted_constants_are_not_written_over_a_store(store, tmp_path, capsys):
    before = store.read_bytes()

    assert f"--fit {store} is a store" in rejection(capsys, "measure", store, "--fit", store)
    assert store.read_bytes() == before

    (tmp_path / "fitted.json").write_text("an earlier file")
    assert main(["measure", str(store), "--fit", str(tmp_path / "fitted.json")]) == 0
    assert "constants" in (tmp_path / "fitted.json").read_text()


def test_an_exported_kernel_is_not_written_over_a_store(store, capsys):
    before = store.read_bytes()

    said = rejection(capsys, "export", store, "-o", store, "--force")

    assert f"-o {store} is a store" in said
    assert store.read_bytes() == before


def test_a_report_that_cannot_be_written_is_rejected_before_a_search(kernel, tmp_path, capsys):
    words = ("tune", f"{kernel}:f", "--spec", "f32[128,64]", "--budget", "10min")

    assert "no such folder" in rejection(capsys, *words, "--report", tmp_path / "no/r.html")
