"""Files of several folders, loaded by one process: each with the modules of its own folder."""

import importlib
import sys
from functools import partial

import pytest

from neuroncore.commands.function import find_function, parse_name
from neuroncore.commands.user_folder import in_its_folder, leave_user_folder


@pytest.fixture(autouse=True)
def of_this_test():
    yield
    leave_user_folder()


def value(name):
    return find_function(parse_name(str(name)))()


MODULE = {"shared_values.py": "VALUE = {!r}"}
PACKAGE = {
    "shared_values/__init__.py": "from .inner import VALUE",
    "shared_values/inner.py": "VALUE = {!r}",
}
NAMESPACE = {"shared_values/inner.py": "VALUE = {!r}"}
OWN_PATH = {"lib/shared_values.py": "VALUE = {!r}"}
IMPORTS = {
    "module": (MODULE, "from shared_values import VALUE"),
    "package": (PACKAGE, "from shared_values import VALUE"),
    "namespace": (NAMESPACE, "from shared_values.inner import VALUE"),
    "a path of its own": (
        OWN_PATH,
        "import sys; sys.path.insert(0, __file__[:-7] + 'lib'); from shared_values import VALUE",
    ),
}


def write_folder(folder, files, imports):
    for name, text in {**files, "user.py": f"{imports}\ndef f(): return VALUE\n"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text.format(folder.name))


@pytest.mark.parametrize(("files", "imports"), IMPORTS.values(), ids=IMPORTS)
def test_a_file_imports_the_modules_of_its_own_folder(files, imports, tmp_path):
    for folder in "ab":
        write_folder(tmp_path / folder, files, imports)

    found = [value(tmp_path / folder / "user.py:f") for folder in "abba"]

    assert found == ["a", "b", "b", "a"]


@pytest.mark.parametrize("name", IMPORTS)
def test_a_function_imports_the_modules_of_its_own_folder_when_it_is_called(name, tmp_path):
    files, imports = IMPORTS[name]
    for folder in "ab":
        write_folder(tmp_path / folder, files, "")
        (tmp_path / folder / "user.py").write_text(f"def f():\n    {imports}\n    return VALUE")
    names = [parse_name(f"{tmp_path}/{folder}/user.py:f") for folder in "ab"]
    first, second = [in_its_folder(partial(find_function, each)) for each in names]

    assert [f() for f in (first, second, first, second)] == ["a", "b", "a", "b"]
    assert [f"{tmp_path}/{folder}" in sys.path for folder in "ab"] == [False, True]


def test_a_module_of_the_current_folder_is_not_one_of_a_file(tmp_path, monkeypatch):
    for folder in "ab":
        write_folder(tmp_path / folder, MODULE, "from shared_values import VALUE")
    monkeypatch.chdir(tmp_path / "a")

    assert [value(n) for n in ("user:f", "../b/user.py:f", "user:f")] == ["a", "b", "a"]


def test_a_module_that_only_another_folder_has_is_not_found(tmp_path):
    write_folder(tmp_path / "a", MODULE, "from shared_values import VALUE")
    write_folder(tmp_path / "b", {}, "from shared_values import VALUE")
    assert value(tmp_path / "a/user.py:f") == "a"

    with pytest.raises(ModuleNotFoundError, match="shared_values"):
        value(tmp_path / "b/user.py:f")


def test_what_was_loaded_leaves_nothing(tmp_path):
    modules, path = set(sys.modules), list(sys.path)
    write_folder(tmp_path, *IMPORTS["a path of its own"])
    value(tmp_path / "user.py:f")

    leave_user_folder()

    assert (set(sys.modules), sys.path) == (modules, path)


def test_a_module_that_changes_another_is_without_effect_on_the_next_file(tmp_path):
    write_folder(
        tmp_path,
        MODULE,
        "import shared_values; shared_values.VALUE += '2'; VALUE = shared_values.VALUE",
    )

    assert value(tmp_path / "user.py:f") == value(tmp_path / "user.py:f")


def test_modules_that_were_there_before_and_packages_stay(tmp_path, monkeypatch):
    write_folder(tmp_path, MODULE, "import shared_values, colorsys; VALUE = colorsys")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    import shared_values  # pyrefly: ignore

    found = [value(tmp_path / "user.py:f") for _ in range(2)]

    assert found[0] is found[1] is sys.modules["colorsys"]
    assert sys.modules.pop("shared_values") is shared_values


@pytest.mark.parametrize(
    "imported_by", ["import {}", "import importlib; importlib.import_module('{}')"]
)
def test_other_code_does_not_import_the_modules_of_a_file(imported_by, tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    library = tmp_path / "library"
    write_folder(tmp_path / "kernels", {"colorsys.py": "VALUE = {!r}"}, "VALUE = 1")
    write_folder(library, {"lazy.py": "def load():\n    " + imported_by.format("colorsys")}, "")
    monkeypatch.syspath_prepend(library)
    value(tmp_path / "kernels" / "user.py:f")

    importlib.import_module("lazy").load()

    assert not hasattr(sys.modules["colorsys"], "VALUE")


def test_a_file_imports_its_own_module_of_a_name_of_the_standard_library(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    write_folder(tmp_path / "a", {"colorsys.py": "VALUE = {!r}"}, "from colorsys import VALUE")

    assert value(tmp_path / "a" / "user.py:f") == "a"


def test_other_code_imports_a_module_that_only_the_file_has(tmp_path):
    write_folder(tmp_path / "a", MODULE, "VALUE = 1")
    value(tmp_path / "a" / "user.py:f")

    assert importlib.import_module("shared_values").VALUE == "a"
