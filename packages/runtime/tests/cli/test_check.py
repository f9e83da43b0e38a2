"""What `nki-run --check` prints on a terminal and in a pipe."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

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
        (Terminal(), {"FORCE_COLOR": "0"}, "auto", False),
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


WRITES = f"""import os
def write():
    try: open({str(Path.home() / "written")!r}, "w")
    except OSError: pass
"""
FINDING = {
    "rule": "run", "message": {}, "place": {"path": 5}, "severity": "error", "certainty": None,
    "basis": [], "edits": [], "notes": [1],
}  # fmt: skip
OVERWRITES = f"""import gc, os
FINDING = {json.dumps(FINDING).encode()!r}
def write(text):
    (sent,) = (o for o in gc.get_objects() if type(o).__name__ == "SentFindings")
    sent._shared[8 : 8 + len(text)] = text
    sent._shared[:8] = len(text).to_bytes(8)
    os._exit(1)
"""
ENDS = {
    "syntax error": ("x = (", 2, "not Python: '(' was never closed"),
    "exits at once": ("import os; os._exit(3)", 3, "the program ended with exit code 3"),
    "exits at once, with 0": (
        "import os; os._exit(0)", 1, "the program ended by os._exit, before its checks did"
    ),
    "exits with text": ("raise SystemExit('bad thing')", 1, "bad thing"),
    "exits with True": ("raise SystemExit(True)", 1, "the program ended with exit code 1"),
    "exits with 256": ("raise SystemExit(256)", 0, None),
    "exit handler": (
        "import atexit, os; atexit.register(os._exit, 5)", 5, "the program ended with exit code 5"
    ),
    "base exception": ("class E(BaseException): pass\nraise E('x')", 1, "x"),
    "signal": ("import os; os.kill(os.getpid(), 11)", 139, "the program was ended by SIGSEGV"),
    "real-time signal": (
        "import os; os.kill(os.getpid(), 40)", 168, "the program was ended by signal 40"
    ),
    "undecodable error": ("raise ValueError('a\\udcff')", 1, "a\udcff"),
    "findings overwritten": (
        f"{OVERWRITES}write(b'[' * 10**6)", 1, "the program ended with exit code 1"
    ),
    "findings of other types": (
        f"{OVERWRITES}write(b'[' + FINDING + b']')", 1, "the program ended with exit code 1"
    ),
    "timeout": ("while True: pass", 137, "stopped after 2 s; --timeout allows more"),
    "version": ("import nki", 2, "no language that the program imports (nki) speaks NKI 9"),
    "forbidden at exit": (f"import atexit\n{WRITES}atexit.register(write)", 1, "may not do this"),
    "forbidden in a thread": (
        f"import threading, time\n{WRITES}"
        "threading.Thread(target=lambda: (time.sleep(0.2), write())).start()", 1, "may not do this",
    ),
    "fails in a fork": ("import os\nif os.fork(): os.wait()\nelse: 1 / 0", 0, None),
}  # fmt: skip


@pytest.mark.skipif(not landlock_version(), reason="the kernel has no Landlock")
@pytest.mark.parametrize("options", [(), ("--output-file", "r.json")], ids=["stdout", "file"])
@pytest.mark.parametrize("end", ENDS)
def test_every_end_of_a_run_has_a_document_with_its_exit_code(
    nki_run, program, tmp_path, end, options
):
    text, code, reason = ENDS[end]
    (tmp_path / "r.json").write_text("{}")
    options += ("--nki", "9") if end == "version" else ()
    options += ("--timeout", "2") if end == "timeout" else ()

    done = nki_run("--output-format", "json", *options, program(text))

    written = (tmp_path / "r.json").read_text() if "--output-file" in options else done.stdout
    document = json.loads(written)
    (file,) = document["files"]
    assert (done.returncode, document["exit_code"]) == (code, code), done.stderr
    assert file["status"] == ("failed" if code else "passed")
    assert {finding["path"] for finding in file["findings"]} <= {file["path"]}
    messages = [finding["message"] for finding in file["findings"]]
    assert len(messages) == (reason is not None) and all(reason in m for m in messages), messages


@pytest.mark.skipif(not landlock_version(), reason="the kernel has no Landlock")
@pytest.mark.parametrize(
    ("change", "target"),
    [
        ("os.symlink({!r}, 'out/r')", "r"),
        ("os.rename('out', 'old'); os.symlink({!r}, 'out')", ""),
        ("os.symlink({!r}, 'out/r')", "absent"),
    ],
    ids=["file", "folder", "new file"],
)
def test_a_document_is_not_written_where_a_link_of_the_program_leads(
    nki_run, program, tmp_path, change, target
):
    (tmp_path / "out").mkdir()
    with TemporaryDirectory(dir=Path.home()) as name:
        outside = Path(name)
        (outside / "r").write_text("the user's")

        text = f"import os; {change.format(str(outside / target))}"
        done = nki_run("--output-file", "out/r", program(text))

        assert [file.read_text() for file in outside.iterdir()] == ["the user's"]
    assert done.returncode == 2
    assert done.stderr == "nki-run: --output-file out/r: the program has put another file there\n"


def test_a_document_replaces_the_file_that_a_link_leads_to_and_has_its_mode(
    nki_run, program, tmp_path
):
    (tmp_path / "real").touch(0o600)
    (tmp_path / "r").symlink_to("real")

    done = nki_run("--output-file", "r", program("open('r').read()"))

    assert (done.returncode, (tmp_path / "r").is_symlink()) == (0, True)
    assert "nki-run: 0 findings" in (tmp_path / "real").read_text()
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o600


def test_without_a_supervisor_a_document_has_the_exit_code_too(nki_run, program):
    for text, code in (("raise SystemExit(7)", 7), ("print('said')", 0), ("1 / 0", 1)):
        done = nki_run("--unconfined", "--output-format", "json", program(text))

        assert (done.returncode, json.loads(done.stdout)["exit_code"]) == (code, code)


def test_a_document_is_all_of_stdout(nki_run, program):
    text = "import os\nprint('one'); os.system('echo two'); 1 / 0"

    done = nki_run("--output-format", "json", program(text))

    assert json.loads(done.stdout)["exit_code"] == 1
    assert {"one", "two", "ZeroDivisionError: division by zero"} <= {*done.stderr.splitlines()}


def test_paths_beneath_the_working_folder_are_relative_to_it(nki_run, program, tmp_path):
    name = program("import os; os.chdir('/')\nimport broken")
    (tmp_path / "broken.py").write_text("1 / 0")

    done = nki_run("--output-format", "json", str(tmp_path / name))

    files = json.loads(done.stdout)["files"]
    assert [file["path"] for file in files] == [name, "broken.py"]
    assert files[1]["findings"][0]["path"] == "broken.py"


def test_checks_that_did_not_end_are_an_error_also_without_a_document(nki_run, program):
    done = nki_run("--check", "memory", program("import os; os._exit(0)"))

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "nki-run: the program ended by os._exit, before its checks did\n"


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

    (finding,) = json.loads(done.stdout)["files"][0]["findings"]
    assert (finding["code"], finding["message"]) == ("E", "<exception str() failed>")


def test_a_document_that_cannot_be_written_is_named_before_the_run(nki_run, program):
    done = nki_run("--output-file", "none/r.json", program("print('ran')"))

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "nki-run: --output-file none/r.json: no such folder none\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-m", "nowhere"], "can't run 'nowhere': no such module"),
        (["{}:none"], "{} has no function none"),
        (["{}:f", "f32["], "'f32[' is not an argument"),
    ],
)
def test_a_document_has_a_mistake_in_the_words_of_the_program(nki_run, program, words, message):
    name = program("def f(x): pass")

    done = nki_run("--output-format", "json", *(word.format(name) for word in words))

    document = json.loads(done.stdout)
    (finding,) = document["files"][0]["findings"]
    assert (done.returncode, document["exit_code"]) == (2, 2)
    assert finding["message"].startswith(message.format(name))
    assert f"nki-run: {finding['message']}" in done.stderr
