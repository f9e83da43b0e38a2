"""Changes between two descriptions, and the drafts that are made of them."""

from __future__ import annotations

import ast
import json
import tomllib
from pathlib import Path

import pytest

from nki_migrate.cli.main import main
from nki_migrate.drafting import Api, Kind, changes_between, drafts
from nki_migrate.drafting.api import Entry, parse_parameters
from nki_migrate.drafting.changes import moved, same_default
from nki_migrate.rules.rule import read_rule


def api(version: str, **functions: str) -> Api:
    entries = [
        Entry(f"nki.isa.{name}", "function", parse_parameters(text, name))
        for name, text in functions.items()
    ]
    return Api(version, {entry.name: entry for entry in entries}, f"stubs of {version}")


def changes(old: str, new: str) -> list[tuple[Kind, str]]:
    found = changes_between(api("0.7", f=old), api("0.8", f=new))
    return [(change.kind, change.parameter) for change in found]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("x, name=None", "x, name=None", []),
        ("x, name=None", "x, mode=1, name=None", [(Kind.INSERTED, "mode")]),
        ("x", "x, name=None", [(Kind.APPENDED, "name")]),
        ("x, mode=1, name=None", "x, name=None", [(Kind.REMOVED, "mode")]),
        ("dst, imm", "dst, src", [(Kind.RENAMED, "imm")]),
        ("a, b, c", "a, c, b", [(Kind.REORDERED, "c")]),
        ("a, b=1", "a, *, b=1", [(Kind.KEYWORD_ONLY, "b")]),
        ("a, *, b=1", "a, b=1", [(Kind.POSITIONAL, "b")]),
        ("a, b=1", "a, b=2", [(Kind.DEFAULT, "b")]),
        ("a, b", "a, b=2", [(Kind.OPTIONAL, "b")]),
        ("a, b=2", "a, b", [(Kind.REQUIRED, "b")]),
        ("a, op=nl.add", "a, op=add", []),
        ("a, n=0.0", "a, n=0", []),
    ],
)
def test_a_difference_is_one_change_of_its_kind(old, new, expected):
    assert changes(old, new) == expected


def test_functions_come_go_and_are_renamed():
    old = api("0.7", stays="x", goes="a, b, c", max_index="dst, data, vals")
    new = api("0.8", stays="x", comes="q", max_index8="dst, data, vals")

    found = {(c.kind, c.name, c.new) for c in changes_between(old, new)}

    assert found == {
        (Kind.FUNCTION_RENAMED, "nki.isa.max_index", "nki.isa.max_index8"),
        (Kind.FUNCTION_ADDED, "nki.isa.comes", "q"),
        (Kind.FUNCTION_REMOVED, "nki.isa.goes", ""),
    }


def test_the_fewest_parameters_move():
    assert moved(list("abcd"), list("abcd")) == []
    assert moved(list("acdb"), list("abcd")) == ["b"]
    assert moved(list("dabc"), list("abcd")) == ["d"]


def test_an_elided_default_is_unknown_and_not_another():
    assert same_default("...", "1")
    assert not same_default("engine.unknown", "engine.vector")


OLD = api(
    "0.7", copy="dst, src, mode=1, name=None", move="dst, imm", cut="x, n, name=None",
    rng="dst, engine=engine.unknown, name=None", old="a, b", max_index="dst, data, vals",
    kept="dst", flag="a, b=1",
)  # fmt: skip
NEW = api(
    "0.8", copy="dst, src, priority=None, mode=1, name=None", move="dst, src", cut="x, name=None",
    rng="dst, engine=engine.vector, name=None", max_index8="dst, data, vals", fresh="q, n=1",
    kept="dst", flag="a, *, b=1",
)  # fmt: skip


def drafted_rules() -> dict[str, dict]:
    files, _ = drafts(OLD, NEW)
    texts = {name: text for name, text in files.items() if name.startswith("rules/")}
    return {name: tomllib.loads(text) for name, text in texts.items()}


def examples() -> dict[str, tuple[str, str | None]]:
    """Function → the call of its example, before and after."""
    found = {}
    for rule in drafted_rules().values():
        for example in rule["functions"]:
            calls = [t and ast.unparse(ast.parse(t).body[0].body[0])  # type: ignore[attr-defined]
                     for t in (example["old"], example.get("new"))]  # fmt: skip
            found[calls[0].partition("(")[0]] = calls[0], calls[1]
    return found


def test_each_rule_shows_a_call_before_and_after():
    assert examples() == {
        "nisa.copy": ("nisa.copy(dst, src, mode)", "nisa.copy(dst, src, mode=mode)"),
        "nisa.move": ("nisa.move(dst, imm=imm)", "nisa.move(dst, src=imm)"),
        "nisa.cut": ("nisa.cut(x, n)", None),
        "nisa.rng": ("nisa.rng(dst)", None),
        "nisa.old": ("nisa.old(a, b)", None),
        "nisa.max_index": ("nisa.max_index(dst, data, vals)", "nisa.max_index8(dst, data, vals)"),
        "nisa.flag": ("nisa.flag(a, b)", "nisa.flag(a, b=b)"),
    }


def test_a_drafted_rule_is_a_rule_file_and_says_that_it_is_a_draft(tmp_path):
    files, _ = drafts(OLD, NEW)
    rules = {Path(name).name: text for name, text in files.items() if name.startswith("rules/")}

    for name, text in rules.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        rule = read_rule(tmp_path / name, {})
        assert rule.id.startswith("NKI7")
        assert rule.title and rule.examples and rule.source
        assert text.startswith("# DRAFT") and tomllib.loads(text)["draft"] is True


def test_functions_that_change_alike_share_a_rule():
    old = api("0.7", f="x, name=None", g="y, name=None", h="z")
    new = api("0.8", f="x, p=None, name=None", g="y, p=None, name=None", h="z, p=None")

    files, _ = drafts(old, new)

    (rule,) = (tomllib.loads(t) for n, t in files.items() if n.startswith("rules/"))
    assert rule["title"] == "`nisa.f` and `nisa.g`: `p` is inserted before `name`"


def test_what_calls_for_nothing_has_no_rule_and_is_in_the_tables():
    files, _ = drafts(OLD, NEW)
    rows = json.loads(files["nki_names.json"])["names"]["nki.isa"]

    assert rows["kept"]["versions"] == [["0.7-0.8", "dst"]]
    assert rows["fresh"]["versions"] == [["0.8", "q, n=1"]]
    assert rows["old"]["versions"] == [["0.7", "a, b"]]
    assert "fresh                    0.8     (q, n=1)" in files["isa.txt"].splitlines()


def test_a_renamed_parameter_fills_the_field_of_before():
    old, new = api("0.7", max8="dst, src, name=None"), api("0.8", max8="dst, data, name=None")

    files, _ = drafts(old, new)

    assert "max8                     0.8     (dst, data:src, name=None)" in files["isa.txt"]


def test_the_support_table_gets_the_version_and_a_row_for_each_rule():
    files, _ = drafts(OLD, NEW)
    table = tomllib.loads(files["nki_versions.toml"])

    assert [version["name"] for version in table["version"]] == ["0.8"]
    titles = {rule["title"] for rule in drafted_rules().values()}
    assert {row["what"] for row in table["change"]} == titles
    assert {row["to"] for row in table["change"]} == {"0.8"}


def test_every_file_says_that_it_is_a_draft():
    files, _ = drafts(OLD, NEW)

    described = {name for name in files if name.startswith("api-")}  # a description as it is
    assert described == {"api-0.8.json"}
    assert all("draft" in files[name].lower() for name in files.keys() - described)


def test_the_command_writes_all_of_it(tmp_path, capsys):
    names = {f: {"kind": "function", "versions": [["0.7", "x"], ["0.8", "x, y, name=None"]]}
             for f in ("f", "g")}  # fmt: skip
    table = tmp_path / "names.json"
    table.write_text(json.dumps({"names": {"nki.isa": names}}), encoding="utf-8")

    code = main(
        ["draft-rules", f"{table}@0.7", f"{table}@0.8", "--output-dir", str(tmp_path / "d")]
    )

    assert code == 0
    assert "4 changes, 0 rules drafted\n   4 appended\n" in capsys.readouterr().out
    assert {p.name for p in (tmp_path / "d").iterdir()} == {
        "README.md", "isa.txt", "nki_names.json", "nki_versions.toml", "api-0.8.json",
        "changes.json",
    }  # fmt: skip
