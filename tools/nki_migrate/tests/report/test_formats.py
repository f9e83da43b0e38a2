"""Every format says the same, in the form that its readers expect."""

from __future__ import annotations

import importlib.metadata
import json
from email.message import Message
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from tools.nki_migrate.tests.command_line import run

from neuroncore.findings import Edit, Finding, Region, Safety, Severity
from neuroncore.findings.formats import FORMATS
from nki_migrate.engine.results import FileResult, FileStatus
from nki_migrate.index import Source, apply_edits
from nki_migrate.report import make_report

SCHEMA = Path(__file__).with_name("schemas") / "sarif-schema-2.1.0.json"
VALIDATOR = jsonschema.Draft4Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))

OLD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def double(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nl.store(out, tile * 2.0)
    return out


@nki.jit(mode="simulation")
def keep(x):  # nki-migrate: ignore
    return x


def measure():
    return nki.benchmark(double)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)
    (tmp_path / "my kernels").mkdir()
    (tmp_path / "my kernels/old.py").write_text(OLD)
    (tmp_path / "broken.py").write_text("import nki\ndef (:\n")
    return tmp_path


def finding(rule: str = "NKI1133", **given) -> Finding:
    known: dict[str, Any] = {
        "place": Region(given.pop("path", "k.py"), 1, 1, 1, 2),
        "severity": Severity.ERROR, "safety": Safety.MANUAL, "message": "says so",
    }  # fmt: skip
    return Finding(rule, **(known | given))


def rendered(form: str, *findings: Finding, text: str = "a = 1\n", **given) -> str:
    status = FileStatus.MANUAL
    result = FileResult("k.py", status, "0.1", (), findings, before=text, after=text)
    return FORMATS[form](make_report([result], target="0.6", **given))


def log_of(*arguments: object) -> dict:
    log = json.loads(run("check", *arguments, "--output-format", "sarif").stdout)
    VALIDATOR.validate(log)
    return log["runs"][0]


# -- all of them


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_ends_with_the_same_exit_code(folder, form):
    assert run("check", ".", "--output-format", form).exit_code == 2
    assert run("check", "my kernels", "--output-format", form).exit_code == 1
    assert run("check", "my kernels", "--exit-zero", "--output-format", form).exit_code == 0


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_can_go_to_a_file(folder, form):
    printed = run("check", "my kernels", "--output-format", form).stdout
    silent = run("check", "my kernels", "--output-format", form, "--output-file", "report")

    assert silent.stdout == ""
    assert "nki-migrate: --output-file wrote report\n" in silent.stderr
    assert (folder / "report").read_text(encoding="utf-8") == printed


def test_a_report_that_cannot_be_written_ends_with_2(folder):
    result = run("check", "my kernels", "--output-file", "none/report")

    assert result.exit_code == 2
    assert "--output-file none/report: No such file or directory" in result.stderr


@pytest.mark.parametrize("form", ["jsonl", "github", "junit"])
def test_statistics_go_beside_a_report_that_has_no_place_for_them(folder, form):
    result = run("check", "my kernels", "--statistics", "--output-format", form)

    assert "rule       found  fixed  unsafe  manual" in result.stderr
    assert "rule  " not in result.stdout


def test_statistics_are_counts_in_json(folder):
    document = json.loads(
        run("check", "my kernels", "--statistics", "--output-format", "json").stdout
    )
    counts = {entry["rule"]: entry for entry in document["statistics"]}

    assert counts["NKI1134"] == {
        "rule": "NKI1134", "found": 1, "fixed": 1, "unsafe": 0, "manual": 0,
    }  # fmt: skip


# -- jsonl


def test_jsonl_is_the_findings_of_json_one_per_line(folder):
    document = json.loads(run("check", ".", "--output-format", "json").stdout)
    lines = run("check", ".", "--output-format", "jsonl").stdout.splitlines()

    entries = [json.loads(line) for line in lines]
    assert entries[1:] == [f for file in document["files"] for f in file["findings"]]
    assert entries[0]["path"] == "broken.py" and entries[0]["rule"] is None
    assert entries[0]["message"].startswith("does not parse: line 2")


# -- github


def test_github_gets_one_command_per_finding(folder):
    lines = run("check", ".", "--output-format", "github").stdout.splitlines()

    assert lines[0].startswith("::error file=broken.py::does not parse: line 2")
    store = next(line for line in lines if "NKI1134" in line)
    place = "file=my kernels/old.py,line=9,endLine=9,col=5,endColumn=30"
    assert store.startswith(f"::error {place},title=nki-migrate NKI1134 [safe]::double: ")
    assert all(line.startswith(("::error ", "::warning ", "::notice ")) for line in lines)


def test_github_commands_escape_what_would_end_them():
    line = rendered("github", finding(path="a,b:c%.py", message="50 % of\nx, y: z"))

    assert "file=a%2Cb%3Ac%25.py," in line
    assert line.endswith("::50 %25 of%0Ax, y: z\n")


# -- junit


def test_junit_has_a_case_per_kernel_and_one_for_what_is_outside(folder):
    root = ElementTree.fromstring(run("check", ".", "--output-format", "junit").stdout)

    broken, old = root.findall("testsuite")
    (error,) = broken.iter("error")
    assert error.attrib["message"].startswith("does not parse")
    cases = {case.get("name"): case for case in old}
    assert set(cases) == {"double", "keep", "(outside of kernels)"}
    assert "old.py:9:5: NKI1134 [safe]" in cases["double"].findtext("failure", "")
    assert cases["keep"].find("skipped") is not None
    assert {k: root.get(k) for k in ("tests", "failures", "errors", "skipped")} == {
        "tests": "4", "failures": "2", "errors": "1", "skipped": "1",
    }  # fmt: skip


def test_a_kernel_that_fix_finished_passes_in_junit(folder):
    root = ElementTree.fromstring(run("fix", "my kernels", "--output-format", "junit").stdout)

    assert root.find("testsuite/testcase[@name='double']/failure") is None
    outside = "testsuite/testcase[@name='(outside of kernels)']/failure"
    assert "NKI1116" in root.findtext(outside, "")


def test_junit_holds_no_character_that_xml_has_not():
    said = rendered("junit", finding(message="a\x00b\x1b<&>\ufffe"))

    assert "a\ufffdb\ufffd<&>\ufffd" in ElementTree.fromstring(said).findtext(".//failure", "")


# -- sarif


def test_the_log_holds_to_the_schema_and_tells_of_files_that_failed(folder):
    log = log_of(".", "--statistics")

    (invocation,) = log["invocations"]
    assert (invocation["executionSuccessful"], invocation["exitCode"]) == (False, 2)
    (notification,) = invocation["toolExecutionNotifications"]
    assert notification["message"]["text"].startswith("does not parse: line 2")
    assert log["properties"]["statistics"][0]["found"] >= 1


@pytest.mark.parametrize(
    "change",
    [
        lambda log: log["runs"][0]["results"][0].pop("message"),
        lambda log: log["runs"][0]["results"][0].update(level="fatal"),
        lambda log: log["runs"][0]["results"][0]["locations"][0].update(line=1),
        lambda log: log.update(version="2.2"),
    ],
    ids=["no-message", "level", "unknown-property", "version"],
)
def test_the_schema_notices_a_log_that_is_none(folder, change):
    log = json.loads(run("check", ".", "--output-format", "sarif").stdout)
    change(log)

    assert not VALIDATOR.is_valid(log)


def test_rules_carry_their_page_step_safety_and_class(folder):
    rules = log_of("my kernels")["tool"]["driver"]["rules"]
    store = next(rule for rule in rules if rule["id"] == "NKI1134")

    assert store["properties"] == {"step": "0.1→0.2", "safety": "safe", "class": "b"}
    assert store["help"]["markdown"].startswith("## NKI1134")


def test_rules_point_to_the_documentation_that_the_package_declares(folder, monkeypatch):
    address = "https://example.org/nki-bridge"
    pages = {"Homepage": address, "Documentation": f"{address}/rules.html"}
    declared = Message()
    for label, page in pages.items():
        declared["Project-URL"] = f"{label}, {page}"
    monkeypatch.setattr(importlib.metadata, "metadata", lambda distribution: declared)

    driver = log_of("my kernels")["tool"]["driver"]

    addresses = {rule["id"]: rule["helpUri"] for rule in driver["rules"]}
    assert addresses["NKI1134"] == f"{address}/rules.html#nki1134"
    assert driver["informationUri"] == address


def test_a_result_points_to_its_rule_its_place_and_its_kernel(folder):
    log = log_of("my kernels")
    store = next(result for result in log["results"] if result["ruleId"] == "NKI1134")

    assert log["tool"]["driver"]["rules"][store["ruleIndex"]]["id"] == "NKI1134"
    (place,) = store["locations"]
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": "my%20kernels/old.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 9, "startColumn": 5, "endLine": 9, "endColumn": 30},
    }
    assert place["logicalLocations"] == [{"name": "double", "kind": "function"}]


def test_paths_in_the_log_are_relative_however_they_are_given(folder):
    def addresses(path):
        return [
            result["locations"][0]["physicalLocation"]["artifactLocation"]
            for result in log_of(path)["results"]
        ]

    assert addresses(folder / "my kernels") == addresses("my kernels")


def test_the_fixes_of_one_result_do_what_they_say(folder):
    for result in log_of("my kernels")["results"]:
        for fix in result.get("fixes", ()):
            edits = [
                Edit(*[r["deletedRegion"][k] for k in REGION], text=r["insertedContent"]["text"])
                for r in fix["artifactChanges"][0]["replacements"]
            ]
            assert apply_edits(Source(OLD + "\n"), edits) != OLD + "\n"


REGION = ("startLine", "startColumn", "endLine", "endColumn")


def test_an_edit_that_removes_a_line_ends_where_the_next_begins():
    removal = finding(safety=Safety.SAFE, edits=(Edit(1, 1, 1, 7, ""),))
    log = json.loads(rendered("sarif", removal, text="a = 1\nb\n"))

    (fix,) = log["runs"][0]["results"][0]["fixes"]
    region = fix["artifactChanges"][0]["replacements"][0]["deletedRegion"]
    assert [region[k] for k in REGION] == [1, 1, 2, 1]


def test_an_unsafe_fix_is_flagged_with_its_assumption():
    unsafe = finding(safety=Safety.UNSAFE, assumption="N <= 128", edits=(Edit(1, 1, 1, 2, "b"),))
    log = json.loads(rendered("sarif", unsafe))
    VALIDATOR.validate(log)

    (fix,) = log["runs"][0]["results"][0]["fixes"]
    assert fix["properties"] == {"safety": "unsafe", "assumption": "N <= 128"}


def test_fingerprints_survive_moved_and_indented_code_and_distinguish_results(folder):
    def marks():
        return [result["partialFingerprints"] for result in log_of("my kernels")["results"]]

    before = marks()
    (folder / "my kernels/old.py").write_text(
        "# a line\n\n" + OLD.replace("nl.load(x)", "nl.load(x )")
    )
    after = marks()

    assert len({json.dumps(mark) for mark in before}) == len(before)
    assert len(after) == len(before)
    assert len([mark for mark in before if mark not in after]) == 1  # the line whose words differ
