"""Every command with `--report` writes a page."""

from __future__ import annotations

import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest
from members import ROOT

from nki_scope.cli import main

MLP = "import numpy as np\ndef mlp(x, w):\n    return np.maximum(x @ w, 0)\n"
SPECS = ("--spec", "f32[64,128]", "--spec", "w=f32[128,256]")
STREAM = str(ROOT / "examples" / "tokenplan" / "stream.py") + ":stream_kernel"
COMMANDS = {
    "nkigen": (("nkigen", "mlp.py:mlp", *SPECS), 2, "Passes"),
    "nkigym": (("nkigym", "tune", "mlp.py:mlp", *SPECS, "--budget", "4"), 2, "Search"),
    "tokenplan": (("tokenplan", "explain", STREAM, "--spec", "f32[512,256]"), 1, None),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_writes_its_kernels_and_its_explanation(name, tmp_path, data_of):
    words, kernels, title = COMMANDS[name]
    (tmp_path / "mlp.py").write_text(MLP)
    for module in ("html", "zlib", "linecache"):  # of the user, beside the function
        (tmp_path / f"{module}.py").write_text("raise RuntimeError('imported by a package')")
    program = str(Path(sys.executable).parent / words[0])
    done = subprocess.run((program, *words[1:], "--report", "page.html"), cwd=tmp_path,
                          capture_output=True, text=True)  # fmt: skip

    assert done.returncode == 0, done.stderr
    document, _ = data_of(tmp_path / "page.html")
    assert len(document["kernels"]) == kernels
    assert title in [name for name, _ in document["texts"]] or not document["texts"]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_that_cannot_be_written_is_a_mistake_in_the_options(name, tmp_path):
    words, _, _ = COMMANDS[name]
    (tmp_path / "mlp.py").write_text(MLP)
    program = str(Path(sys.executable).parent / words[0])
    done = subprocess.run((program, *words[1:], "--report", "none/page.html"), cwd=tmp_path,
                          capture_output=True, text=True)  # fmt: skip

    assert done.returncode == 2
    assert f"{words[0]}: --report none/page.html: no such folder none" in done.stderr


def test_a_search_shows_its_curve_and_the_gain_of_each_step(tmp_path, data_of, browser):
    document, _ = data_of(tuned(tmp_path))
    (schedule,) = document["schedules"]
    before, after = document["kernels"]
    best = [ns for _, _, ns in schedule["curve"]]

    assert schedule["rootNs"] == before["totalNs"]
    assert schedule["steps"][-1]["ns"] == after["totalNs"] == best[-1]
    assert best == sorted(best, reverse=True)

    browser.open(tmp_path / "page.html")
    shown(browser, "Schedule")
    text = browser.run(f"{PANEL}.innerText")
    assert all(step["step"] in text for step in schedule["steps"])
    assert browser.run(f"{PANEL}.querySelectorAll('canvas').length") == 3
    assert browser.barriers() == []
    assert browser.problems == []


def test_a_store_shows_every_kernel_before_and_after(tmp_path, data_of, browser):
    (tmp_path / "mlp.py").write_text(MLP)
    run("nkigym", "tune", "mlp.py:mlp", *SPECS, "--budget", "60", "--store", "s.db", cwd=tmp_path)
    (tuned_one,) = data_of(tmp_path / "page.html")[0]["schedules"]
    run("nkigym", "show", "s.db", cwd=tmp_path)
    document, _ = data_of(tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    shown(browser, "Schedule")

    assert [s["steps"] for s in document["schedules"]] == [tuned_one["steps"]]
    assert [k["totalNs"] for k in document["kernels"]] == [
        tuned_one["rootNs"], tuned_one["steps"][-1]["ns"],
    ]  # fmt: skip
    assert document["schedules"][0]["curve"] == tuned_one["curve"]
    assert browser.problems == []


def test_the_page_of_a_store_has_the_line_of_every_instruction(tmp_path, data_of):
    (tmp_path / "mlp.py").write_text(MLP)
    run("nkigym", "tune", "mlp.py:mlp", *SPECS, "--budget", "60", "--store", "s.db", cwd=tmp_path)
    run("nkigym", "show", "s.db", cwd=tmp_path)
    document, _ = data_of(tmp_path / "page.html")
    calls = [call for kernel in document["kernels"] for call in kernel["calls"]]

    assert calls
    for call in calls:
        file, line = call["at"]
        assert call["instruction"] in document["files"][file]["lines"][line - 1]


def test_orders_are_shown_with_their_witness(tmp_path, data_of, browser):
    run("tokenplan", "explain", STREAM, "--spec", "f32[512,256]", cwd=tmp_path)
    (orders,) = data_of(tmp_path / "page.html")[0]["orders"]
    kept = [row for row in orders["rows"] if row["status"] == "kept"]

    assert [row["ends"] for row in kept] == [
        ["dma_copy", "tensor_scalar"], ["tensor_scalar", "dma_copy.2"],
    ]  # fmt: skip
    assert "tile[0, 0] at k = 0" in kept[0]["why"][0]

    browser.open(tmp_path / "page.html")
    shown(browser, "Tokens")
    assert "tile[0, 0] at k = 0" in browser.run(f"{PANEL}.innerText")
    browser.run(f"{PANEL}.querySelector('#order-0-removed').click()")
    assert "every iteration allocates the tensor" in browser.run(f"{PANEL}.innerText")
    assert browser.barriers() == []
    browser.run(f"{PANEL}.querySelector('td button').click()")
    shown(browser, "Timeline")
    assert "Line 16" in browser.run(f"{PANEL}.querySelector('.details').textContent")
    assert browser.problems == []


PANEL = "document.querySelector('[role=tabpanel]:not([hidden])')"


def shown(browser, view: str) -> None:
    tabs = "[...document.querySelectorAll('[role=tab]')]"
    browser.run(f"{tabs}.find(t => t.textContent === {view!r}).click()")


def tuned(folder: Path) -> Path:
    """The page of a short search."""
    (folder / "mlp.py").write_text(MLP)
    run("nkigym", "tune", "mlp.py:mlp", *SPECS, "--budget", "200", cwd=folder)
    return folder / "page.html"


def run(program: str, *words: str, cwd: Path) -> None:
    path = str(Path(sys.executable).parent / program)
    subprocess.run((path, *words, "--report", "page.html"), cwd=cwd, check=True)


def test_a_migration_is_shown_side_by_side(tmp_path, data_of):
    old = ROOT / "examples" / "beta1" / "masked_add.py"
    program = str(Path(sys.executable).parent / "nki-migrate")
    words = ("fix", str(old), "--output-dir", str(tmp_path), "--report", str(tmp_path / "m.html"))
    done = subprocess.run((program, *words), capture_output=True, text=True)

    assert "--report wrote" in done.stderr
    (file,) = data_of(tmp_path / "m.html")[0]["migrations"]
    new = (tmp_path / "masked_add.py").read_text("utf-8").splitlines()
    assert [row[2] for row in file["rows"] if row[1]] == old.read_text("utf-8").splitlines()
    assert [row[4] for row in file["rows"] if row[3]] == new
    assert file["rules"]


def test_a_migration_and_a_schedule_are_shown_without_script(tmp_path, capsys):
    old = ROOT / "examples" / "beta1" / "masked_add.py"
    run("nki-migrate", "fix", str(old), "--output-dir", str(tmp_path / "new"), cwd=tmp_path)
    (tmp_path / "page.html").rename(tmp_path / "migrated.html")
    printed = {}
    for page in (tmp_path / "migrated.html", tuned(tmp_path)):
        assert main(["show", str(page)]) == 0
        text = page.read_text("utf-8")
        summary = unescape(text[text.index("<details") : text.index("</details>")])
        printed[page.name] = capsys.readouterr().out
        assert all(line in summary for line in printed[page.name].splitlines())
        assert "<pre>\n" not in summary

    assert "line 30: NKI1133: a load is an allocation and a DMA" in printed["migrated.html"]
    assert "Schedule\nmlp: " in printed["page.html"]
    assert ' µs after {"transform": ' in printed["page.html"]


def test_a_file_that_runs_no_kernel_is_shown_on_its_listed_case(tmp_path, data_of):
    program = Path(sys.executable).parent / "nki-run"
    example = ROOT / "examples" / "beta2" / "attention.py"
    done = subprocess.run((program, "--report", "page.html", example), cwd=tmp_path,
                          capture_output=True, text=True)  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert "attention_kernel ran on its case in cases.toml" in done.stderr
    document, _ = data_of(tmp_path / "page.html")
    assert {kernel["name"] for kernel in document["kernels"]} == {"attention_kernel"}
