"""Names of a package are imported at their first use."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from neuroncore.lazy_names import lazy_names


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package with the modules `a`, which defines `one` and `two`, and `b`."""
    (tmp_path / "lazily").mkdir()
    (tmp_path / "lazily/__init__.py").write_text("")
    (tmp_path / "lazily/a.py").write_text("one, two = 1, 2\n")
    (tmp_path / "lazily/b.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    return "lazily"


def test_a_module_is_imported_when_one_of_its_names_is_used(package: str):
    get, names = lazy_names(package, {"a": "one two", "": "b"})

    assert names() == ["b", "one", "two"]
    assert "lazily.a" not in sys.modules
    assert (get("one"), get("two"), get("b").__name__) == (1, 2, "lazily.b")


def test_another_name_is_an_attribute_error(package: str):
    get, _ = lazy_names(package, {"a": "one"})

    with pytest.raises(AttributeError, match="module 'lazily' has no attribute 'two'"):
        get("two")
