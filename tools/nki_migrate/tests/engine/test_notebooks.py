"""Notebooks: the cells are migrated, and every byte that is not a changed line stays."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from tools.nki_migrate.tests.command_line import run

from nki_migrate.engine.notebooks import NotebookError, read_notebook

KERNEL = """\
@nki.jit
def double(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)  # é
    nl.store(out, tile)
    return out
"""
IMPORTS = "import neuronxcc.nki as nki\nimport neuronxcc.nki.language as nl"
MAGICS = """\
%matplotlib inline
!pip install \\
    numpy
files = !ls
for f in files:
    %time print(f)
files?"""


def code(source: str | list[Any], outputs: tuple[Any, ...] = ()) -> dict[str, Any]:
    lines = source.splitlines(keepends=True) if isinstance(source, str) else source
    return {
        "cell_type": "code", "execution_count": 3, "metadata": {}, "outputs": list(outputs),
        "source": lines,
    }  # fmt: skip


def notebook(*cells: dict[str, Any], language: str = "python") -> str:
    document = {
        "cells": list(cells), "metadata": {"kernelspec": {"language": language}},
        "nbformat": 4, "nbformat_minor": 5,
    }  # fmt: skip
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


PICTURE = {
    "output_type": "display_data",
    "data": {"image/png": "aGk=\n", "x": 1e3, "nl": "nl.load"},
}
WHOLE = notebook(
    {"cell_type": "markdown", "metadata": {}, "source": ["`nl.load(x)` é\n"]},
    code(IMPORTS),
    code(MAGICS),
    code(KERNEL, (PICTURE,)),
    code("%%bash\nnl.load('not Python)"),
    code(""),
    code("%%time\ny = double(x)"),
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)
    return tmp_path


def cells_of(raw: str) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(raw)["cells"]]


def test_cells_are_migrated_and_magics_outputs_and_other_cells_stay(folder):
    path = folder / "k.ipynb"
    path.write_text(WHOLE, encoding="utf-8")

    assert run("fix", "k.ipynb", "--notebooks", "--self-check").exit_code == 0

    new, old = json.loads(path.read_text(encoding="utf-8")), json.loads(WHOLE)
    sources = ["".join(cell["source"]) for cell in new["cells"]]
    assert sources[1] == "import nki\nimport nki.isa as nisa\nimport nki.language as nl"
    assert "nisa.dma_copy(dst=tile, src=x)" in sources[3] and "nl.load" not in sources[3]
    assert [sources[i] for i in (0, 2, 4, 5, 6)] == [cells_of(WHOLE)[i] for i in (0, 2, 4, 5, 6)]
    for cell in (*new["cells"], *old["cells"]):
        cell["source"] = []
    assert new == old


def test_lines_that_stay_keep_their_very_bytes(folder):
    raw = WHOLE.replace('"    return out\\n"', '"\\u0020   return out\\n"').replace("é", "\\u00e9")
    odd = raw.replace('"execution_count": 3', '"execution_count" :3').replace("\n", "\r\n")
    (folder / "k.ipynb").write_bytes(odd.encode())

    run("fix", "k.ipynb", "--notebooks")

    after = (folder / "k.ipynb").read_bytes().decode()
    old, new = odd.split("\r\n"), after.split("\r\n")
    changed = [line for line in new if line not in old]
    assert all(line.lstrip().startswith('"') for line in changed) and 0 < len(changed) < 12
    assert '"\\u0020   return out\\n"' in after and '"execution_count" :3' in after
    assert "é" not in after


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_a_notebook_on_one_line_stays_on_one_line(folder, separators):
    raw = json.dumps(json.loads(WHOLE), separators=separators)
    (folder / "k.ipynb").write_text(raw)

    run("fix", "k.ipynb", "--notebooks")

    after = (folder / "k.ipynb").read_text()
    assert "\n" not in after and after == json.dumps(json.loads(after), separators=separators)
    assert "nisa.dma_copy" in after


def test_a_source_that_is_one_string_stays_one(folder):
    document = json.loads(WHOLE)
    for cell in document["cells"]:
        cell["source"] = "".join(cell["source"])
    (folder / "k.ipynb").write_text(json.dumps(document))

    run("fix", "k.ipynb", "--notebooks")

    assert all(
        isinstance(cell["source"], str)
        for cell in json.loads((folder / "k.ipynb").read_text())["cells"]
    )


def test_nothing_to_migrate_changes_no_byte(folder):
    raw = (
        WHOLE.replace("nl.load", "nl.what").replace("neuronxcc.nki", "nki").replace("nl.store", "f")
    )
    (folder / "k.ipynb").write_text(raw, encoding="utf-8")
    modified = (folder / "k.ipynb").stat().st_mtime_ns

    run("fix", "k.ipynb", "--notebooks")

    assert (folder / "k.ipynb").read_text(encoding="utf-8") == raw
    assert (folder / "k.ipynb").stat().st_mtime_ns == modified


def test_findings_name_the_cell_and_the_line_of_the_file(folder):
    (folder / "k.ipynb").write_text(WHOLE, encoding="utf-8")

    lines = run("check", ".", "--notebooks", "--output-format", "concise").stdout.splitlines()

    store = next(line for line in lines if "NKI1134" in line)
    number = WHOLE.split("\n").index('    "    nl.store(out, tile)\\n",') + 1
    assert store.startswith(f"k.ipynb:{number}:10: NKI1134 [safe] cell 4: ")


def test_the_diff_is_a_patch_of_the_file(folder):
    (folder / "k.ipynb").write_text(WHOLE, encoding="utf-8")
    patch = run("diff", "k.ipynb", "--notebooks").stdout
    subprocess.run(["git", "apply", "-"], input=patch.encode(), check=True, cwd=folder)
    by_patch = (folder / "k.ipynb").read_bytes()
    (folder / "k.ipynb").write_text(WHOLE, encoding="utf-8")

    run("fix", "k.ipynb", "--notebooks")

    assert (folder / "k.ipynb").read_bytes() == by_patch


def test_a_cell_that_is_left_empty_stays_in_place(folder):
    raw = notebook(code("import neuronxcc.nki.typing as nt"), code(IMPORTS), code(KERNEL))
    (folder / "k.ipynb").write_text(raw, encoding="utf-8")

    result = run("fix", "k.ipynb", "--notebooks")

    assert "internal error" not in result.stdout and "go back" not in result.stdout
    assert len(cells_of((folder / "k.ipynb").read_text(encoding="utf-8"))) == 3


def test_detect_reads_notebooks_when_asked(folder):
    (folder / "k.ipynb").write_text(WHOLE, encoding="utf-8")

    assert run("detect", "k.ipynb").exit_code == 2
    assert ": double: 0.1" in run("detect", "k.ipynb", "--notebooks").stdout


def test_folders_are_searched_for_notebooks_only_when_asked(folder):
    (folder / "k.ipynb").write_text(WHOLE, encoding="utf-8")

    assert run("check", ".").exit_code == 0
    assert run("check", ".", "--notebooks").exit_code == 1


def test_a_notebook_named_without_the_option_is_rejected(folder):
    (folder / "k.ipynb").write_text(WHOLE, encoding="utf-8")

    result = run("check", "k.ipynb")

    assert result.exit_code == 2
    assert "failed k.ipynb: a notebook; --notebooks reads its cells" in result.stdout


def test_comments_in_cells_suppress(folder):
    raw = WHOLE.replace('"@nki.jit\\n"', '"@nki.jit  # nki-migrate: ignore\\n"')
    (folder / "k.ipynb").write_text(raw, encoding="utf-8")

    run("fix", "k.ipynb", "--notebooks")

    assert (folder / "k.ipynb").read_text(encoding="utf-8") == raw


def test_notebooks_of_other_languages_have_no_cells_for_us():
    assert read_notebook(notebook(code("nl.load("), language="julia")).cells == ()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ("{", "not a notebook: line 1, column 2: expecting property name"),
        ("[]", "not a notebook of format 4"),
        ('{"worksheets": []}', "not a notebook of format 4"),
        ('{"cells": ["import nki"]}', "not a notebook of format 4"),
        (
            r'{"cells": [{"cell_type": "code", "source": "\ud800"}]}',
            "cell 1 has half of a surrogate pair",
        ),
        (notebook(code(["nki", 1])), "source of cell 1 is neither a string nor a list"),
    ],
)
def test_what_is_no_notebook_is_said(raw, message):
    with pytest.raises(NotebookError, match=message):
        read_notebook(raw)


def test_code_that_is_no_python_is_named_by_cell_and_line(folder):
    (folder / "k.ipynb").write_text(notebook(code("import nki"), code("x = 1\ny = (")))

    result = run("check", "k.ipynb", "--notebooks")

    assert result.exit_code == 2
    assert "failed k.ipynb: does not parse: cell 2, line 2" in result.stdout


def test_a_magic_that_the_migration_would_lose_is_an_error():
    book = read_notebook(notebook(code(MAGICS)))

    with pytest.raises(NotebookError, match="a magic of cell 1 would be lost"):
        book.with_code(book.code.replace("magic 1.1", "gone"))
    with pytest.raises(NotebookError, match="moves between cells"):
        book.with_code(book.code.partition("\n")[2])
