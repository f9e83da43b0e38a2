"""Every example kernel means what its NumPy reference says, on every case but the timed ones."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from members import ROOT

import nki_runtime
from nki_migrate.verify.arrays import fill_array
from nki_migrate.verify.cases import Arg, Case, read_cases
from nki_migrate.verify.compare import Tolerance, compare

# Folder → language and version that it is written for.
LANGUAGES = {
    "beta1": ("beta1", "0.1"),
    "beta1_todo": ("beta1", "0.1"),
    "beta2": ("beta2", "0.7"),
    "tokenplan": ("beta2", "0.7"),
}
TIMED = 1024  # sizes from here on belong to the benchmark (examples/README.md)


def sizes(args: tuple[Arg, ...]) -> tuple[int, ...]:
    return tuple(n for arg in args for n in arg.shape or ())


def quick_cases() -> Iterator[Any]:
    """(folder, case, number of the variant), named by kernel, seed and variant."""
    for folder in LANGUAGES:
        for case in read_cases(ROOT / "examples" / folder / "cases.toml"):
            for number, args in enumerate(case.variants()):
                if max(sizes(args), default=0) < TIMED:
                    name = f"{folder}-{case.kernel}-seed{case.seed}-{number}"
                    yield pytest.param(folder, case, number, id=name)


def load(path: Path) -> ModuleType:
    """A file as a module of its own, kept out of sys.modules."""
    spec = importlib.util.spec_from_file_location(f"example_{path.parent.name}_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def arguments(case: Case, number: int) -> dict[str, Any]:
    """The arguments by name; arrays are filled from the case's seed."""
    return {
        a.name: fill_array(a, case.seed, number, i)
        if a.is_array
        else tuple(a.value)
        if isinstance(a.value, list)
        else a.value
        for i, a in enumerate(case.variants()[number])
    }


def launched(kernel: Any, case: Case) -> Any:
    if case.grid is not None:
        return kernel[case.grid]
    return kernel if case.lnc is None else kernel[case.lnc]


def as_tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize(("folder", "case", "number"), list(quick_cases()))
def test_an_example_agrees_with_its_reference(folder, case, number):
    backend, version = LANGUAGES[folder]
    given, kept = arguments(case, number), arguments(case, number)

    with nki_runtime.use(backend=backend, nki=version, **case.options):
        results = as_tuple(launched(getattr(load(case.path), case.kernel), case)(**given))

    assert case.reference is not None
    expected = as_tuple(getattr(load(case.reference[0]), case.reference[1])(**kept))
    assert len(results) == len(expected)
    for result, reference in zip(results, expected, strict=True):
        difference = compare(result, reference, Tolerance(case.rtol, case.atol, case.ulps))
        assert difference.is_equal, difference.why
    changed = {arg.name for arg in case.args if arg.role == "inout"}
    for name, value in kept.items():
        assert name in changed or np.array_equal(given[name], value), f"{name} was written"


@pytest.mark.parametrize("folder", LANGUAGES)
def test_every_kernel_file_has_a_case(folder):
    cases = read_cases(ROOT / "examples" / folder / "cases.toml")
    kernels = {p.name for p in (ROOT / "examples" / folder).glob("*.py")} - {"references.py"}

    assert {case.file for case in cases} == kernels


@pytest.mark.parametrize("version", ["0.3", "0.4", "0.5", "0.6", "0.7"])
@pytest.mark.parametrize("name", ["softmax", "rmsnorm", "rope", "attention"])
def test_the_examples_also_run_in_the_versions_before(version, name):
    """They use nothing newer than 0.3, but for views that `.ap` takes from 0.5 on."""
    cases = read_cases(ROOT / "examples" / "beta2" / "cases.toml")
    case = next(c for c in cases if c.file == f"{name}.py")
    given = arguments(case, 0)

    with nki_runtime.use(nki=version):
        result = getattr(load(case.path), case.kernel)(**given)
    with nki_runtime.use(nki="0.6"):
        newest = getattr(load(case.path), case.kernel)(**given)

    assert np.array_equal(result, newest)


def written_for_0_7() -> Iterator[Any]:
    """The quick cases of the folders that are written for 0.7."""
    for case in quick_cases():
        if LANGUAGES[case.values[0]] == ("beta2", "0.7"):
            yield case


@pytest.mark.parametrize(("folder", "case", "number"), list(written_for_0_7()))
def test_an_example_of_0_7_gives_the_same_bits_in_0_6(folder, case, number):
    def of(version: str) -> list[bytes]:
        with nki_runtime.use(nki=version, **case.options):
            kernel = launched(getattr(load(case.path), case.kernel), case)
            return [r.tobytes() for r in as_tuple(kernel(**arguments(case, number)))]

    assert of("0.7") == of("0.6")


def test_the_timed_case_of_a_kernel_is_its_last():
    for folder in ("beta1", "beta2"):
        cases = read_cases(ROOT / "examples" / folder / "cases.toml")
        for kernel in {c.kernel for c in cases if c.file != "tour.py"}:
            mine = [max(sizes(c.args)) for c in cases if c.kernel == kernel]
            assert mine[-1] >= TIMED > max(mine[:-1])
