"""The checker is of use because it shares nothing with the analysis that it checks."""

import ast
import sys
from pathlib import Path

import tokenplan.checker

HERE = Path(tokenplan.checker.__file__).parent


def imported(module: Path) -> set[str]:
    """Every module that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module.name}: a relative import"
            found.add(str(node.module))
    return found


def test_the_checker_imports_the_standard_library_numpy_and_itself():
    allowed = {*sys.stdlib_module_names, "numpy"}
    for module in HERE.rglob("*.py"):
        for name in imported(module):
            is_own = name == "tokenplan.checker" or name.startswith("tokenplan.checker.")
            assert is_own or name.partition(".")[0] in allowed, f"{module.name} imports {name}"


def test_nothing_of_the_analysis_imports_the_checker():
    """Only the command line and the report on bytecode may: they hand over to it."""
    package = HERE.parent
    for module in package.rglob("*.py"):
        place = module.relative_to(package).parts[0]
        if place not in ("checker", "cli") and module.name != "bytecode_report.py":
            assert not any(name.startswith("tokenplan.checker") for name in imported(module)), place
