"""Words that the project does not use do not come back."""

from __future__ import annotations

from pathlib import Path

import pytest
from members import ROOT
from words import FOLDERS, files, uses


def used(path: Path, text: str) -> list[str]:
    path.write_text(text, encoding="utf-8")
    return [use.used for use in uses(path)]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("def turned_tile():\n    pass\n", "turned"),
        ("class RoadTable:\n    pass\n", "Road"),
        ("x = 'this is no tile'\n", "is no"),
        ("# what nobody\n", "nobody"),
    ],
)
def test_identifiers_strings_and_comments_are_read(tmp_path: Path, text: str, word: str):
    assert used(tmp_path / "module.py", text) == [word]


def test_pages_are_read_outside_code_blocks(tmp_path: Path):
    text = "The house.\n\n```python\nroad = 1\n```\n"

    assert used(tmp_path / "page.md", text) == ["house"]


def test_a_module_is_introduced_by_a_noun(tmp_path: Path):
    (tmp_path / "src").mkdir()

    assert used(tmp_path / "src" / "module.py", '"""What a module does."""\n') == ["What"]
    assert used(tmp_path / "module.py", '"""What a test shows."""\n') == []


def test_the_project_says_it_in_the_words_of_the_field():
    paths = [ROOT / name for name in FOLDERS]

    assert [str(use) for path in files(paths) for use in uses(path)] == []
