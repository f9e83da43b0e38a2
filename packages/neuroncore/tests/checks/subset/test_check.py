"""Which code is kernel code, where findings point, and the three ways to ask."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from neuroncore.checks.subset import check_function, check_script, check_source
from neuroncore.errors import AttributeValueError, KernelError

KERNEL = """\
import nki
import nki.language as nl

SIZES = [size for size in (1, 2)]  # host code


def unused():
    return {1, 2}


def reached(x):
    return {3, 4}


@nki.jit
def kernel(x):
    return reached(x)
"""


def codes(findings) -> list[tuple[str | None, int]]:
    return [(f.code, f.place.line) for f in findings]


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text))
    return folder


def test_only_what_kernels_reach_is_kernel_code():
    assert codes(check_source(KERNEL, "kernel.py")) == [("expression", 12)]


def test_a_finding_names_place_rule_and_cure_and_puts_a_caret_under_the_construct():
    (finding,) = check_source(KERNEL, "somewhere/kernel.py")

    assert str(finding).splitlines() == [
        "somewhere/kernel.py:12:12: subset[expression]: set literal",
        "    return {3, 4}",
        "           ^^^^^^",
        "    write a loop or a list",
        "    [KLR, the open source of the parser frontend]",
    ]


@pytest.mark.parametrize(
    "launch",
    [
        "run = nki.jit(kernel)",
        "nki.simulate(kernel)(1)",
        "from nki import jit\nrun = jit(kernel)",
        "def main():\n    nki.jit(kernel)(1)",
    ],
)
def test_a_function_that_is_given_to_jit_is_a_kernel(launch):
    source = KERNEL.replace("@nki.jit\n", "") + "\n" + launch + "\n"

    assert [code for code, _ in codes(check_source(source, "kernel.py"))] == ["expression"]


def test_a_file_without_kernels_has_no_findings():
    assert check_source(KERNEL.replace("@nki.jit\n", ""), "kernel.py") == []


def test_classes_that_kernels_build_are_kernel_code():
    source = """
        import nki, nki.language as nl
        class Tiles(nl.NKIObject):
            size: int
            def both(self):
                return helper(self)
        def helper(tiles):
            return lambda: tiles
        @nki.jit
        def kernel(x):
            return Tiles(4).both()
    """

    assert codes(check_source(dedent(source), "kernel.py")) == [("nested-definition", 8)]


def test_annotations_decorators_and_defaults_are_host_code():
    source = """
        import nki
        OPTIONS = {1: 2}
        @nki.jit
        def kernel(x: "list" if OPTIONS else {1, 2}, y=tuple(i for i in (1, 2))) -> {3, 4}:
            z: {5, 6} = 1
            return z
    """

    assert check_source(dedent(source), "kernel.py") == []


def test_a_name_of_the_function_hides_that_of_the_module():
    source = """
        import nki
        def values():
            return {1, 2}
        @nki.jit
        def kernel(values):
            return values
    """

    assert check_source(dedent(source), "kernel.py") == []


def test_an_old_name_is_told_once_in_a_file_where_it_is_used_first():
    source = """
        import neuronxcc.nki as nki
        import neuronxcc.nki.language as nl
        @nki.jit
        def kernel(x):
            y = nl.exp(x)
            return nl.exp(y)
        @nki.jit
        def second(x):
            return nl.exp(x)
    """

    assert codes(check_source(dedent(source), "kernel.py")) == [("old-namespace", 6)]


def test_text_that_is_no_python_is_one_finding():
    (finding,) = check_source("import nki\n@nki.jit\ndef kernel(:\n", "kernel.py")

    assert codes([finding]) == [("syntax", 3)]


def test_an_unknown_version_or_frontend_is_rejected():
    with pytest.raises(AttributeValueError, match=r"NKI 0\.9 is unknown"):
        check_source(KERNEL, "kernel.py", "0.9")
    with pytest.raises(KernelError, match=r"NKI 0\.3 has no frontend 'tracer'"):
        check_source(KERNEL, "kernel.py", "0.3", "tracer")


# -- files


IMPORTING = """
    import nki
    {imports}
    @nki.jit
    def kernel(x):
        return {use}(x)
"""
HELPER = """
    def helper(x):
        return [i for i in x]
    def other(x):
        return {1, 2}
"""


@pytest.mark.parametrize(
    ("imports", "use"),
    [
        ("from parts.tools import helper", "helper"),
        ("from parts.tools import helper as h", "h"),
        ("from parts import tools", "tools.helper"),
        ("import parts.tools", "parts.tools.helper"),
        ("import parts.tools as t", "t.helper"),
        ("from parts import again", "again"),
    ],
)
def test_a_script_is_checked_with_what_its_kernels_reach_in_other_files(tmp_path, imports, use):
    folder = write(
        tmp_path,
        {
            "script.py": IMPORTING.format(imports=imports, use=use),
            "parts/__init__.py": "from .tools import helper as again\n",
            "parts/tools.py": HELPER,
        },
    )

    (finding,) = check_script(folder / "script.py")

    assert finding.place is not None
    assert (finding.code, Path(finding.region.path).name) == ("expression", "tools.py")
    assert "return [i for i in x]" in str(finding)


def test_kernels_of_imported_files_are_checked_too(tmp_path):
    launch = "from kernels import kernel\nkernel(1)\n"
    folder = write(tmp_path, {"script.py": launch, "kernels.py": KERNEL})

    assert codes(check_script(folder / "script.py")) == [("expression", 12)]


def test_a_module_finds_the_package_around_it(tmp_path):
    kernel = IMPORTING.format(imports="from ..tools import helper", use="helper")
    folder = write(
        tmp_path,
        {
            "package/__init__.py": "",
            "package/core/__init__.py": "",
            "package/core/kernel.py": kernel,
            "package/tools.py": HELPER,
        },
    )

    assert [f.code for f in check_script(folder / "package" / "core" / "kernel.py")] == [
        "expression"
    ]


def test_a_script_can_be_narrowed_to_the_kernels_that_names_lead_to(tmp_path):
    text = KERNEL + "\n\n@nki.jit\ndef second(x):\n    return lambda: x\n"
    text += "\n\ndef launch(x):\n    return second(x)\n"
    folder = write(tmp_path, {"script.py": text})

    def found(*names: str) -> list[str | None]:
        return [f.code for f in check_script(folder / "script.py", kernels=names)]

    assert found("kernel") == ["expression"]
    assert found("second") == found("launch") == ["nested-definition"]
    assert found("unused") == []


def test_files_that_import_each_other_end(tmp_path):
    first = "import nki\nfrom second import g\n@nki.jit\ndef f(x):\n    return g(x)\n"
    second = "from first import f\ndef g(x):\n    return {1, 2}\n"
    folder = write(tmp_path, {"first.py": first, "second.py": second})

    assert [f.code for f in check_script(folder / "first.py")] == ["expression"]


def test_a_script_that_is_no_python_is_one_finding(tmp_path):
    folder = write(tmp_path, {"script.py": "def kernel(:\n"})

    assert [f.code for f in check_script(folder / "script.py")] == ["syntax"]


def test_a_function_is_checked_by_itself(tmp_path, monkeypatch):
    plain = KERNEL.replace("import nki\nimport nki.language as nl\n", "").replace("@nki.jit", "")
    spec = importlib.util.spec_from_file_location(
        "loose", write(tmp_path, {"loose.py": plain}) / "loose.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "loose", module)
    spec.loader.exec_module(module)

    assert [f.code for f in check_function(module.kernel)] == ["expression"]
    assert [f.severity for f in check_function(module.kernel, "0.6")] == ["error"]
    assert check_function(module.kernel, "0.7") == []
    assert [f.code for f in check_function(module.unused)] == ["expression"]


def test_a_function_without_a_source_says_so():
    names: dict = {}
    exec("def kernel(x):\n    return x\n", names)

    with pytest.raises(OSError, match="kernel: no source file"):
        check_function(names["kernel"])
