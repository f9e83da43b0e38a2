"""API descriptions from JSON, Python stubs and generated pages; and what contradicts itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nki_migrate.cli.main import main
from nki_migrate.drafting import ApiError, read_api
from nki_migrate.drafting.api import as_json

STUB = '''
class engine(Enum):
    """Engines."""
    vector = ...

class NkiTensor:
    @property
    def shape(self):
        ...
    def ap(self, pattern, offset=0):
        """A view."""

def topk(val_dst, idx_dst, src, n, *, sorted=False, name=None):
    """The largest."""

def rng(dst, engine=engine.unknown, name=None):
    ...

def _private(x): ...
'''
PAGE = """
<html><body><dl class="py function">
<dt class="sig sig-object py" id="nki.isa.{name}">
<span class="sig-prename descclassname"><span class="pre">nki.isa.</span></span><span
class="sig-name descname"><span class="pre">{name}</span></span><span class="sig-paren">(</span>
{parameters}<span class="sig-paren">)</span><a class="reference internal"
href="../../_modules/nki/isa.html"><span class="pre">[source]</span></a><a class="headerlink"
href="#nki.isa.{name}">&#182;</a></dt><dd><p>Text.</p></dd></dl></body></html>
"""


def page(name: str, *parameters: str) -> str:
    shown = [f'<em class="sig-param"><span class="n">{p}</span></em>' for p in parameters]
    return PAGE.format(name=name, parameters=", ".join(shown))


@pytest.fixture
def stubs(tmp_path: Path) -> Path:
    folder = tmp_path / "sdk" / "nki"
    (folder / "isa").mkdir(parents=True)
    (folder / "isa" / "__init__.py").write_text(STUB, encoding="utf-8")
    (folder / "__init__.py").write_text("def jit(fn=None, **kwargs): ...\n", encoding="utf-8")
    return folder


def test_stubs_give_functions_with_their_parameters(stubs):
    entries = read_api(f"{stubs}@0.8").entries

    assert entries["nki.isa.topk"].text == "val_dst, idx_dst, src, n, *, sorted=False, name=None"
    assert entries["nki.isa.rng"].text == "dst, engine=engine.unknown, name=None"
    assert entries["nki.jit"].text == "fn=None, **kwargs"
    assert entries["nki.isa.NkiTensor.ap"].text == "pattern, offset=0"
    assert entries["nki.isa.NkiTensor.shape"].kind == "attribute"
    assert entries["nki.isa.engine"].kind == "enum"
    assert "nki.isa._private" not in entries


def test_pages_give_what_their_signatures_show(tmp_path):
    (tmp_path / "nki.isa.rng.html").write_text(
        page("rng", "dst", "engine=&lt;engine.vector: 2&gt;", "name=None"), encoding="utf-8"
    )
    (tmp_path / "nki.isa.pair.html").write_text(
        page("pair", "shape=(1, 2)", "**kwargs"), encoding="utf-8"
    )

    entries = read_api(f"{tmp_path}@0.8").entries

    assert entries["nki.isa.rng"].text == "dst, engine=engine.vector, name=None"
    assert entries["nki.isa.pair"].text == "shape=(1, 2), **kwargs"


def test_a_description_that_is_written_reads_as_it_was(stubs, tmp_path):
    api = read_api(f"{stubs}@0.8")
    file = tmp_path / "api.json"
    file.write_text(as_json(api), encoding="utf-8")

    again = read_api(str(file))

    assert (again.version, again.entries) == (api.version, api.entries)


def test_a_table_of_versions_is_read_at_the_one_that_is_named(tmp_path):
    file = tmp_path / "names.json"
    rng = {"kind": "function", "versions": [["0.2-0.4", "dst"], ["0.5", "dst, engine=None"]]}
    file.write_text(json.dumps({"names": {"nki.isa": {"rng": rng}}}), encoding="utf-8")

    assert read_api(f"{file}@0.3").entries["nki.isa.rng"].text == "dst"
    assert read_api(f"{file}@0.5").entries["nki.isa.rng"].text == "dst, engine=None"


@pytest.mark.parametrize("versions", [3, [["0.3"]], [[3, "x"]], [["0.3", None]]])
def test_spans_that_are_not_pairs_of_texts_are_rejected(tmp_path, versions):
    file = tmp_path / "names.json"
    rng = {"kind": "function", "versions": versions}
    file.write_text(json.dumps({"names": {"nki.isa": {"rng": rng}}}), encoding="utf-8")

    with pytest.raises(ApiError, match=r"nki\.isa\.rng: versions are pairs"):
        read_api(f"{file}@0.3")


# -- what is wrong ---------------------------------------------------------------------------------


def described(parameters: str, version: str = "0.8") -> str:
    entry = {"kind": "function", "parameters": parameters}
    document = {"schema": "nki-api/1", "version": version, "names": {"nki.isa": {"f": entry}}}
    return json.dumps(document)


WRONG = {
    "twice in JSON": ('{"names": {}, "names": {}}', "names is there twice"),
    "a function twice": (
        described("x").replace('"f": {', '"f": {"kind": "function", "parameters": ""}, "f": {'),
        "f is there twice",
    ),
    "a parameter twice": (described("x, y, x"), "nki.isa.f: parameter x is there twice"),
    "a default that is not an expression": (described("x=1 +"), "nki.isa.f: cannot read"),
    "a parameter behind a default": (described("x=1, y"), "nki.isa.f: cannot read"),
    "more than parameters": (described("x): pass #"), "nki.isa.f: cannot read"),
    "a module that is a list": (
        described("x").replace('{"f": {"kind": "function", "parameters": "x"}}', "[]"),
        "nki.isa must be a table, got []",
    ),
    "an entry that is a number": (
        described("x").replace('{"kind": "function", "parameters": "x"}', "3"),
        "nki.isa.f must be a table, got 3",
    ),
    "not JSON": ("{", "not JSON"),
    "no names": ("{}", 'the table "names" is missing'),
    "no function": (
        '{"schema": "nki-api/1", "version": "0.8", "names": {}}',
        "it describes no function",
    ),
    "not a version": (described("x", "soon"), "'soon' is not a version"),
    "the same version": (described("x", "0.7"), "both descriptions are of NKI 0.7"),
    "an older version": (described("x", "0.6"), "give the older one first"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_description_that_is_wrong_ends_the_command_and_leaves_nothing(what, tmp_path, capsys):
    text, said = WRONG[what]
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(described("x", "0.7"), encoding="utf-8")
    new.write_text(text, encoding="utf-8")

    with pytest.raises(SystemExit) as ended:
        main(["draft-rules", str(old), str(new), "--output-dir", str(tmp_path / "drafts")])

    assert ended.value.code == 2
    assert said in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.json", "old.json"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("missing.json", "no such file"),
        ("nki", "names no version; write"),
        ("nki@later", "'later' is not a version"),
    ],
)
def test_a_source_that_cannot_be_read_says_why(stubs, monkeypatch, given, said):
    monkeypatch.chdir(stubs.parent)

    with pytest.raises(ApiError, match=said):
        read_api(given)


def test_a_function_that_two_stubs_define_is_a_contradiction(stubs):
    twice = STUB + "\ndef rng(dst, name=None): ...\n"
    (stubs / "isa" / "__init__.py").write_text(twice, encoding="utf-8")

    with pytest.raises(ApiError, match=r"nki\.isa\.rng is there twice, as \(dst, engine"):
        read_api(f"{stubs}@0.8")


def test_a_page_without_an_end_and_a_stub_that_is_not_python(tmp_path, stubs):
    (tmp_path / "a.html").write_text(page("f", "x").replace(">)<", "><"), encoding="utf-8")
    (stubs / "bad.py").write_text("def f(:\n", encoding="utf-8")

    with pytest.raises(ApiError, match="the signature has no end"):
        read_api(f"{tmp_path / 'a.html'}@0.8")
    with pytest.raises(ApiError, match=r"bad\.py:1: not Python"):
        read_api(f"{stubs}@0.8")


def test_a_folder_that_holds_something_is_left_alone(tmp_path, capsys):
    old, new, folder = tmp_path / "old.json", tmp_path / "new.json", tmp_path / "drafts"
    old.write_text(described("x", "0.7"), encoding="utf-8")
    new.write_text(described("x, y", "0.8"), encoding="utf-8")
    folder.mkdir()
    (folder / "mine").write_text("", encoding="utf-8")

    with pytest.raises(SystemExit) as ended:
        main(["draft-rules", str(old), str(new), "--output-dir", str(folder)])

    assert ended.value.code == 2
    assert "not an empty folder" in capsys.readouterr().err
    assert [path.name for path in folder.iterdir()] == ["mine"]
