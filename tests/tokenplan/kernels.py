"""The examples of tokenplan as programs, at the sizes of their cases."""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import Any

from members import ROOT

from neuroncore.program import Program
from nki_migrate.verify.cases import Case, read_cases
from nki_runtime import program_of, use

_CASES: dict[str, Case] = {}
for _case in read_cases(ROOT / "examples" / "tokenplan" / "cases.toml"):
    _CASES.setdefault(_case.path.stem, _case)

EXAMPLES = tuple(_CASES)


@cache
def program(name: str) -> Program:
    """The example's program."""
    case = _CASES[name]
    given: dict[str, Any] = {
        a.name: (tuple(a.shape or ()), a.dtype) if a.is_array else a.value for a in case.args
    }
    spec = importlib.util.spec_from_file_location(f"tokenplan_{name}", case.path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with use("beta2", nki="0.6"):
        spec.loader.exec_module(module)
        return program_of(getattr(module, case.kernel), **given)
