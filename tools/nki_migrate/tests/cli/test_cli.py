"""The command line as a user runs it: what is printed, what is written, how it ends."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys

import pytest
from tools.nki_migrate.tests.command_line import run

from nki_migrate.engine import migration, processing
from nki_migrate.settings.request import Request

OLD = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def copy(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(4):  # tiles
        nisa.dma_copy(dst=out, src=x)
    return out
"""
NEW = OLD.replace("nl.affine_range", "range")
MANUAL = OLD.replace("(x):", "(x, sizes=[1]):\n    sizes.append(2)")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)
    (tmp_path / "old.py").write_text(OLD)
    (tmp_path / "new.py").write_text(NEW)
    return tmp_path


# -- the three endings


def test_check_is_the_default_command_and_writes_nothing(folder):
    result = run("old.py")

    assert result.exit_code == 1
    assert "NKI5004 [safe]" in result.stdout
    assert "--> old.py:9:14 in copy" in result.stdout
    assert "9 |     for i in nl.affine_range(4):  # tiles" in result.stdout
    assert "  |              ^^^^^^^^^^^^^^^^^^" in result.stdout
    assert "  +              range" in result.stdout
    assert (folder / "old.py").read_text() == OLD


def test_the_closing_line_counts_files_kernels_and_edits(folder):
    result = run("check", ".")

    assert result.stdout.splitlines()[-1] == ("2 files, 2 kernels (2 already 0.7): 1 edit safe")
    assert "complete (2): copy (new.py:7), copy (old.py:7)" in result.stdout


def test_nothing_stays_frozen_for_who_calls_the_command_as_a_function(folder):
    run("old.py")

    assert gc.get_freeze_count() == 0


def test_fix_writes_the_file_and_a_second_run_changes_nothing(folder):
    first = run("fix", "old.py")
    assert (first.exit_code, (folder / "old.py").read_text()) == (0, NEW)

    second = run("fix", "old.py")
    assert (second.exit_code, (folder / "old.py").read_text()) == (0, NEW)


def test_diff_prints_a_patch_that_does_what_fix_does(folder):
    result = run("diff", "old.py")

    assert result.exit_code == 1
    assert "NKI5004" in result.stderr and "NKI5004" not in result.stdout
    subprocess.run(["git", "apply", "-"], input=result.stdout.encode(), check=True, cwd=folder)
    assert (folder / "old.py").read_text() == NEW


def test_manual_items_leave_exit_code_1_and_a_todo(folder):
    (folder / "old.py").write_text(MANUAL)

    result = run("fix", "old.py")

    assert result.exit_code == 1
    assert "1 manual in 1 kernel" in result.stdout
    assert "# TODO(nki-migrate NKI2016)" in (folder / "old.py").read_text()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["check", "new.py"], 0),
        (["check", "old.py", "--exit-zero"], 0),
        (["diff", "new.py"], 0),
        (["fix", "old.py", "--exit-non-zero-on-fix"], 1),
        (["fix", "new.py", "--exit-non-zero-on-fix"], 0),
        (["fix", "old.py", "--check"], 1),
        (["fix", "old.py", "--diff"], 1),
        (["check", "missing.py"], 2),
        (["check", "missing.py", "--exit-zero"], 2),
        (["check", "old.py", "--ignore", "NKI5"], 0),
        (["check", "old.py", "--select", "NKI1,NKI2"], 0),
        (["check", "old.py", "--select", "NKI50"], 1),
        (["check", "old.py", "--to", "0.5"], 0),
    ],
)
@pytest.mark.parametrize("output", ["text", "concise", "json"])
def test_exit_codes_do_not_depend_on_the_format(folder, arguments, code, output):
    assert run(*arguments, "--output-format", output).exit_code == code


# -- reports


def test_concise_has_one_line_per_finding(folder):
    line = run("check", "old.py", "--output-format", "concise").stdout.splitlines()[0]

    assert line.startswith("old.py:9:14: NKI5004 [safe] nl.affine_range is deprecated")


def test_json_holds_files_kernels_findings_and_the_summary(folder):
    document = json.loads(run("check", ".", "--output-format", "json").stdout)

    assert (document["tool"], document["from"], document["to"]) == ("nki-migrate", "auto", "0.7")
    new, old = document["files"]
    assert (new["path"], new["status"], new["findings"]) == ("new.py", "unchanged", [])
    assert (old["dialect"], old["kernels"][0]["name"], old["error"]) == ("0.7", "copy", None)
    finding = old["findings"][0]
    assert (finding["rule"], finding["line"], finding["safety"]) == ("NKI5004", 9, "safe")
    assert finding["docs"].endswith("#nki5004") and finding["edits"][0]["text"] == "range"
    assert document["summary"]["safe"] == 1


def test_the_report_can_go_to_a_file_while_the_diff_goes_to_stdout(folder):
    result = run("diff", "old.py", "--output-format", "json", "--output-file", "report.json")

    assert result.stdout.startswith("--- a/old.py\n+++ b/old.py\n")
    assert json.loads((folder / "report.json").read_text())["summary"]["safe"] == 1


def test_statistics_count_per_rule(folder):
    (folder / "more.py").write_text(MANUAL)

    lines = run("check", ".", "--statistics").stdout.splitlines()

    assert "rule       found  fixed  unsafe  manual" in lines
    assert "NKI2016        1      0       0       1" in lines


def test_quiet_is_the_closing_line_alone(folder):
    assert len(run("check", ".", "-q").stdout.splitlines()) == 1


def test_colours_come_when_asked_for_and_not_in_a_pipe(folder):
    assert "\x1b[" not in run("check", "old.py").stdout
    assert "\x1b[33mNKI5004" in run("check", "old.py", "--color", "always").stdout


# -- what is blocked


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "--facts", "f.json", "."], "--facts f.json: cannot be read"),
        (["check", "--output-format", "xml", "."], "xml"),
        (["check", "--verify", "."], "--verify belongs to fix and diff"),
        (["check", "--output-dir", "d", "."], "--output-dir belongs to fix"),
        (["fix", "--diff", "--check", "."], "exclude each other"),
        (["check", "--from", "0.7", "--to", "0.6", "."], "--to 0.6 is older than --from 0.7"),
        (["check", "--to", "0.8", "."], "--to 0.8: not a known version; expected 0.2"),
        (["check", "--from", "2", "."], "--from 2: not a known version"),
        (["check", "--select", "E501", "."], "'E501' is not a rule id"),
        (["check", "--assume", "nonsense", "."], "expected 'kernel.arg: shape=(S, 128)"),
        (["check", "--config", "none.toml", "."], "none.toml: cannot be read"),
        (["check", "--config", "c.toml", "--isolated", "."], "exclude each other"),
        (["check", "-j", "0", "."], "not a whole number of at least 1"),
        (["explain", "NKI9999"], "no rule NKI9999"),
        (["verify", "old.py", "new.py", "--entry", "copy"], "cases.toml: cannot be read"),
    ],
)
def test_bad_arguments_end_with_2_and_say_why(folder, arguments, message):
    result = run(*arguments)

    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


# -- bad input: reported, and the others still processed


def test_files_that_cannot_be_used_do_not_stop_the_others(folder):
    (folder / "broken.py").write_text("import nki\ndef (:\n")
    (folder / "latin.py").write_bytes(b"import nki\ns = '\xe9'\n")
    (folder / "gone.py").symlink_to(folder / "never.py")
    (folder / "deep.py").write_text("import nki\nx = " + "(" * 5000 + ")" * 5000 + "\n")
    (folder / "loop").symlink_to(folder, target_is_directory=True)

    result = run("fix", ".")

    assert result.exit_code == 2
    assert "failed broken.py: does not parse: line 2" in result.stdout
    assert "failed latin.py: not UTF-8: byte 0xe9 on line 2" in result.stdout
    assert "failed gone.py: a link to nothing" in result.stdout
    assert "failed deep.py: does not parse" in result.stdout
    assert "failed loop: a link that loops" in result.stdout
    assert "5 files failed" in result.stdout
    assert (folder / "old.py").read_text() == NEW


def test_a_file_without_nki_is_parsed_where_it_is_named(folder):
    (folder / "other.py").write_text("a[1](\n")
    (folder / "sound.py").write_text("x = 1\n")
    (folder / "cells.ipynb").write_text("[")

    named = run("check", "other.py", "sound.py", "cells.ipynb", "--notebooks")
    found = run("check", ".", "--notebooks", "--exit-zero")

    assert named.exit_code == 2
    assert "failed other.py: does not parse: line 1: '(' was never closed" in named.stdout
    assert "failed cells.ipynb: not a notebook" in named.stdout
    assert "2 files, 0 kernels: 0 edits safe, 2 files failed" in named.stdout
    assert found.exit_code == 0 and "failed" not in found.stdout


def test_an_internal_error_leaves_the_file_and_migrates_the_others(folder, monkeypatch):
    migrate = migration.migrate_source

    def fail_on_old(text, path, *rest):
        if path == "a.py":
            raise AssertionError("overlapping edits")
        return migrate(text, path, *rest)

    monkeypatch.setattr(migration, "migrate_source", fail_on_old)
    (folder / "a.py").write_text(OLD)

    result = run("fix", ".")

    assert result.exit_code == 2
    assert "failed a.py: internal error, please report it: AssertionError" in result.stdout
    assert (folder / "a.py").read_text() == OLD
    assert (folder / "old.py").read_text() == NEW


def test_self_check_rejects_an_output_that_a_second_run_would_change(folder, monkeypatch):
    migrate = migration.migrate_source

    def never_done(text, path, *rest):
        result = migrate(text, path, *rest)
        return processing.replace(result, after=result.after + "# again\n")

    monkeypatch.setattr(migration, "migrate_source", never_done)

    result = run("fix", "old.py", "--self-check")

    assert result.exit_code == 2
    assert "running again would change line 13 of the output" in result.stdout
    assert (folder / "old.py").read_text() == OLD


def test_self_check_is_on_in_ci(folder, monkeypatch):
    monkeypatch.setenv("CI", "true")

    assert run("fix", "old.py").exit_code == 0


# -- files keep what is theirs


def test_line_endings_mark_encoding_and_mode_survive(folder):
    raw = b"\xef\xbb\xbf" + OLD.replace("# tiles", "# é").replace("\n", "\r\n").encode()
    path = folder / "old.py"
    path.write_bytes(raw)
    path.chmod(0o754)

    assert run("fix", "old.py").exit_code == 0

    assert path.read_bytes() == raw.replace(b"nl.affine_range", b"range")
    assert path.stat().st_mode & 0o777 == 0o754


def test_an_output_folder_gets_the_results_and_the_input_stays(folder):
    (folder / "kernels/sub").mkdir(parents=True)
    (folder / "kernels/sub/a.py").write_text(OLD)
    (folder / "kernels/b.py").write_text(NEW)
    (folder / "kernels/notes.py").write_text("x = 1\n")

    assert run("fix", "kernels", "--output-dir", "out").exit_code == 0

    assert (folder / "kernels/sub/a.py").read_text() == OLD
    assert (folder / "out/sub/a.py").read_text() == NEW
    assert (folder / "out/b.py").read_text() == NEW
    assert not (folder / "out/notes.py").exists()


def test_two_files_that_would_become_one_are_rejected(folder):
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "k.py").write_text(OLD)

    result = run("fix", "a", "b", "--output-dir", "out")

    assert result.exit_code == 2
    assert "would both become out/k.py" in result.stderr
    assert not (folder / "out").exists()


def test_standard_input_is_fixed_to_standard_output(folder):
    result = run("fix", "-", "-v", "--stdin-filename", "k.py", stdin=OLD)

    assert (result.exit_code, result.stdout) == (0, NEW)
    assert "k.py:9:14" in result.stderr
    assert "k.py:9:14" not in run("fix", "-", "--stdin-filename", "k.py", stdin=OLD).stderr


# -- comments and configuration


def test_a_suppressed_finding_is_gone_and_its_comment_is_used(folder):
    (folder / "old.py").write_text(OLD.replace("# tiles", "# nki-migrate: ignore[NKI5004]"))

    result = run("check", "old.py")

    assert result.exit_code == 0
    assert "NKI5004 [" not in result.stdout and "NKI0001" not in result.stdout


def test_an_unused_suppression_is_a_note_that_changes_no_exit_code(folder):
    (folder / "new.py").write_text(NEW.replace("# tiles", "# nki-migrate: ignore[NKI1131]"))

    result = run("check", "new.py")

    assert result.exit_code == 0
    assert "NKI0001" in result.stdout and "new.py:9:25" in result.stdout


def test_a_file_that_asks_to_be_skipped_is(folder):
    (folder / "old.py").write_text("# nki-migrate: skip-file\n" + OLD)

    assert run("check", "old.py").exit_code == 0


def test_the_nearest_configuration_holds_unless_isolated(folder):
    (folder / "pyproject.toml").write_text('[tool.nki-migrate]\nignore = ["NKI5004"]\n')

    assert run("check", "old.py").exit_code == 0
    assert run("check", "old.py", "--isolated").exit_code == 1


def test_excludes_of_the_command_line_replace_or_extend(folder):
    (folder / "gen").mkdir()
    (folder / "gen/k.py").write_text(OLD)

    assert "gen/k.py" in run("check", ".").stdout
    assert "gen/k.py" not in run("check", ".", "--extend-exclude", "gen").stdout
    assert "gen/k.py" not in run("check", ".", "--exclude", "gen/**").stdout


# -- the commands that explain


def test_detect_prints_one_line_per_kernel_with_the_reason(folder):
    result = run("detect", ".")

    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "new.py:7: copy: 0.7 (nothing in it is older)",
        "old.py:7: copy: 0.7 (nl.affine_range is deprecated: range (line 9))",
    ]


def test_detect_of_an_unreadable_file_ends_with_2(folder):
    (folder / "broken.py").write_text("import nki\ndef (:\n")

    result = run("detect", ".")

    assert result.exit_code == 2
    assert "old.py:7: copy: 0.7" in result.stdout and "broken.py" in result.stderr


def test_rules_lists_every_rule_in_three_forms():
    rows = [line.split()[0] for line in run("rules").stdout.splitlines()]
    entries = json.loads(run("rules", "--output-format", "json").stdout)
    pages = run("rules", "--output-format", "md").stdout

    assert rows == sorted(rows) and "NKI5004" in rows
    assert [entry["id"] for entry in entries] == rows
    assert all(f"## {rule}\n" in pages for rule in rows)


def test_explain_prints_old_new_and_how_to_suppress():
    page = run("explain", "nki5004").stdout

    assert "Old:" in page and "New:" in page
    assert "# nki-migrate: ignore[NKI5004]" in page


@pytest.mark.parametrize(
    "command", ["check", "diff", "fix", "detect", "rules", "explain", "verify"]
)
def test_every_command_has_help_with_an_example(command):
    assert "nki-migrate " + command + " " in " ".join(run(command, "--help").stdout.split())


# -- processes


def test_the_answer_is_the_same_for_any_number_of_processes(folder):
    for i in range(12):
        (folder / f"k{i}.py").write_text([OLD, NEW, MANUAL][i % 3])
    command = [sys.executable, "-m", "nki_migrate", "check", ".", "--output-format", "json"]

    outputs = {
        subprocess.run([*command, "-j", str(jobs)], capture_output=True, cwd=folder).stdout
        for jobs in (1, 3)
    }

    assert len(outputs) == 1
    assert len(json.loads(outputs.pop())["files"]) == 14


def test_results_come_in_the_order_of_the_files_though_the_longest_are_begun_first():
    raws = [(OLD + "# longer\n" * i).encode() for i in range(8)]
    tasks = [processing.Task(f"k{i}.py", raw, Request()) for i, raw in enumerate(raws)]

    assert [r.path for r in processing.process_all(tasks, 2)] == [t.path for t in tasks]


def test_check_imports_no_numpy(folder):
    (folder / "k.py").write_text(OLD)
    program = "import sys; from nki_migrate.cli.main import main\n"
    program += "main(['check', '.']); print('numpy' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, cwd=folder)

    assert done.stdout.splitlines()[-1] == b"False"


def test_a_pipe_that_closes_early_is_no_traceback(folder):
    for i in range(200):
        (folder / f"k{i}.py").write_text(OLD)
    command = f"{sys.executable} -m nki_migrate check . -j 1 | head -1"

    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=folder)

    assert "Traceback" not in done.stderr


def test_the_module_runs_as_a_program():
    done = subprocess.run(
        [sys.executable, "-m", "nki_migrate", "--version"], capture_output=True, text=True
    )

    assert done.stdout.startswith("nki-migrate ")


def test_without_arguments_there_is_help(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "nki_migrate"],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "80"},
    )

    assert "usage:" in done.stdout + done.stderr
    assert done.returncode in (0, 2)
