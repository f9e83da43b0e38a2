"""What `nki-run --check` prints on a terminal and in a pipe."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from neuroncore.confinement.process import landlock_version
from neuroncore.findings import Finding
from nki_runtime.cli.check import Checker


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "variables", "color", "is_coloured"),
    [
        (Terminal(), {}, "auto", True),
        (Terminal(), {"NO_COLOR": "1"}, "auto", False),
        (io.StringIO(), {}, "auto", False),
        (io.StringIO(), {"FORCE_COLOR": "1"}, "auto", True),
        (io.StringIO(), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, "auto", False),
        (io.StringIO(), {"NO_COLOR": "1"}, "always", True),
        (Terminal(), {"FORCE_COLOR": "1"}, "never", False),
    ],
)
def test_findings_are_coloured_on_a_terminal_or_on_request(
    monkeypatch, stream, variables, color, is_coloured
):
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.setenv(name, variables.get(name, ""))
    monkeypatch.setattr(sys, "stderr", stream)
    checker = Checker("memory", "text", color=color)
    checker._report.add(Finding("memory", "tile is read before it is written"))

    assert checker.finish()

    label = "\x1b[31mmemory: \x1b[0m" if is_coloured else "memory: "
    head = f"{label}tile is read before it is written"
    assert stream.getvalue() == f"{head}\n\nnki-run: 1 finding (memory 1)\n"


@pytest.mark.parametrize(
    ("text", "status", "line", "code", "message"),
    [
        ("x = 1", "passed", None, None, None),
        ("x = 1\n1 / 0", "failed", 2, "ZeroDivisionError", "division by zero"),
        ("import sys\nsys.exit(3)", "failed", 0, None, "the program ended with exit code 3"),
        ("import nki\nnki.choice.nothing", "failed", 2, "AttributeError", None),
    ],
    ids=["passes", "raises", "exits", "wrong name"],
)
def test_a_document_has_the_result_of_a_run_without_checks(
    nki_run, program, tmp_path, text, status, line, code, message
):
    name = program(text)

    done = nki_run("--output-format", "json", "--output-file", "r.json", name)

    (file,) = json.loads((tmp_path / "r.json").read_text())["files"]
    assert (file["path"], file["status"]) == (name, status)
    assert (done.returncode == 0) == (status == "passed") == (not file["findings"])
    for finding in file["findings"]:
        assert (finding["rule"], finding.get("code")) == ("run", code)
        assert finding["line"] == line or not line
        assert message in (None, finding["message"])


@pytest.mark.skipif(not landlock_version(), reason="the kernel has no Landlock")
def test_a_document_has_what_a_confined_program_may_not_do(nki_run, program, tmp_path):
    outside = Path.home() / "written"
    text = f"import contextlib\nwith contextlib.suppress(OSError): open({str(outside)!r}, 'w')"

    done = nki_run("--output-file", "r.json", "--output-format", "json", program(text))

    (file,) = json.loads((tmp_path / "r.json").read_text())["files"]
    assert (done.returncode, file["status"]) == (1, "failed")
    assert file["findings"][0]["message"].startswith("the program may not do this: writes")


@pytest.mark.parametrize("text", ["x = (", "import os; os._exit(3)", "import os; os.abort()"])
def test_a_run_that_ends_without_a_document_leaves_none_of_an_earlier_one(
    nki_run, program, tmp_path, text
):
    (tmp_path / "r.json").write_text("{}")

    done = nki_run("--output-file", "r.json", program(text))

    assert done.returncode != 0
    assert not (tmp_path / "r.json").exists()


@pytest.mark.parametrize("text", ["print('x' * 10**6)", "class E(BaseException): pass\nraise E"])
def test_a_program_that_ends_early_has_its_document(tmp_path, program, text):
    """Of `nki-run … | head`, too, whose reader has left."""
    options = ["--output-file", "r.json", "--output-format", "json"]
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "nki_runtime", *options, program(text)]

    done = subprocess.run(command, cwd=tmp_path, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)

    assert done.returncode != 0
    assert json.loads((tmp_path / "r.json").read_text())["files"][0]["status"] == "failed"


def test_an_error_whose_text_cannot_be_had_is_in_the_document(nki_run, program):
    text = "class E(Exception):\n    def __str__(self): 1 / 0\nraise E"

    done = nki_run("--output-format", "json", program(text))

    (finding,) = json.loads(done.stderr)["files"][0]["findings"]
    assert (finding["code"], finding["message"]) == ("E", "<exception str() failed>")


def test_a_document_on_stderr_takes_the_place_of_a_traceback(nki_run, program):
    done = nki_run("--output-format", "json", program("1 / 0"))

    assert done.returncode == 1
    assert json.loads(done.stderr)["files"][0]["findings"][0]["message"] == "division by zero"


def test_a_document_that_cannot_be_written_is_named_before_the_run(nki_run, program):
    done = nki_run("--output-file", "none/r.json", program("print('ran')"))

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "nki-run: --output-file none/r.json: no such folder none\n"
