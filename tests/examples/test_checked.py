"""The example kernels pass every check that watches a run, on one case each."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest
from members import ROOT

import nki_runtime
from neuroncore.checks import watching
from nki_migrate.verify.arrays import fill_array
from nki_migrate.verify.cases import Case, read_cases

LANGUAGES = {"beta1": "0.1", "beta2": "0.7"}
TIMED = 1024  # sizes from here on belong to the benchmark (examples/README.md)


def first_cases() -> Iterator[Any]:
    """The first untimed case of each kernel, named by folder and kernel."""
    for folder in LANGUAGES:
        seen: dict[str, Case] = {}
        for case in read_cases(ROOT / "examples" / folder / "cases.toml"):
            if max((n for a in case.args for n in a.shape or ()), default=0) < TIMED:
                seen.setdefault(case.kernel, case)
        for name, case in seen.items():
            yield pytest.param(folder, case, id=f"{folder}-{name}")


@pytest.mark.filterwarnings("ignore::neuroncore.instructions.KernelWarning")
@pytest.mark.parametrize(("folder", "case"), list(first_cases()))
def test_no_check_finds_anything_in_an_example(folder: str, case: Case):
    given = {
        a.name: fill_array(a, case.seed, 0, i) if a.is_array else a.value
        for i, a in enumerate(case.args)
    }
    with nki_runtime.use(folder, nki=LANGUAGES[folder]):
        spec = importlib.util.spec_from_file_location(f"checked_{case.path.stem}", case.path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        kernel = getattr(module, case.kernel)
        with watching() as report:
            (kernel if case.grid is None else kernel[case.grid])(**given)

    assert str(report) == "nothing found"
