"""Every example as a program: captured, printed, parsed, executed, verified, emitted, run."""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from members import ROOT

from neuroncore.errors import ProgramError, UnsupportedError
from neuroncore.program import (
    Program,
    capture,
    emit,
    execute_program,
    parse_program,
    verify,
    without_division,
)
from nki_migrate.verify.arrays import fill_array
from nki_migrate.verify.cases import Case, read_cases
from nki_runtime import use

LANGUAGES = {"beta1": "0.1", "beta2": "0.6"}
TIMED = 1024  # sizes from here on belong to the benchmark (examples/README.md)
VERSIONS = ("0.2", "0.3", "0.4", "0.5", "0.6", "0.7")


def quick_cases(folder: str) -> Iterator[Any]:
    for case in read_cases(ROOT / "examples" / folder / "cases.toml"):
        for number, args in enumerate(case.variants()):
            if max((n for arg in args for n in arg.shape or ()), default=0) < TIMED:
                name = f"{folder}-{case.kernel}-seed{case.seed}-{number}"
                yield pytest.param(folder, case, number, id=name)


ALL = [case for folder in LANGUAGES for case in quick_cases(folder)]
FIRST = list({(p.values[0], p.values[1].kernel): p for p in reversed(ALL)}.values())
"""One case of each kernel, its first."""


def load(path: Path) -> ModuleType:
    """A file as a module of its own, kept out of sys.modules."""
    spec = importlib.util.spec_from_file_location(f"program_{path.parent.name}_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def arguments(case: Case, number: int) -> dict[str, Any]:
    return {
        a.name: fill_array(a, case.seed, number, i) if a.is_array else a.value
        for i, a in enumerate(case.variants()[number])
    }


def captured(folder: str, case: Case, number: int) -> tuple[Program, list[bytes]]:
    """The program, and the bytes of the results that the kernel itself gives."""
    given = arguments(case, number)
    with use(folder, nki=LANGUAGES[folder]):
        kernel = getattr(load(case.path), case.kernel)
        launched = kernel[case.grid or case.lnc] if case.grid or case.lnc else kernel
        return capture(launched, **given), as_bytes(launched(**copy.deepcopy(given)))


def arrays(case: Case, number: int) -> list[np.ndarray]:
    return [a for a in arguments(case, number).values() if isinstance(a, np.ndarray)]


def as_bytes(result: Any) -> list[bytes]:
    return [r.tobytes() for r in (result if isinstance(result, tuple) else (result,))]


def run_source(source: str, program: Program, version: str, given: list[np.ndarray]) -> list[bytes]:
    names: dict[str, Any] = {}
    with use("beta2", nki=version, target=program.target):
        exec(compile(source, f"<{program.name}>", "exec"), names)
        return as_bytes(names[program.name](*given))


@pytest.mark.parametrize(("folder", "case", "number"), ALL)
def test_a_captured_example_says_what_the_kernel_does(folder, case, number):
    program, expected = captured(folder, case, number)

    assert parse_program(str(program)) == program
    assert as_bytes(execute_program(program, arrays(case, number))) == expected


def assert_source_runs_alike(folder: str, case: Case, number: int, *versions: str) -> None:
    program = without_division(captured(folder, case, number)[0])
    expected = as_bytes(execute_program(program, arrays(case, number)))
    for version in versions:
        source = emit(program, version)
        assert run_source(source, program, version, arrays(case, number)) == expected, version


@pytest.mark.parametrize(("folder", "case", "number"), ALL)
def test_the_emitted_source_of_an_example_gives_identical_bytes(folder, case, number):
    assert_source_runs_alike(folder, case, number, VERSIONS[-1])


@pytest.mark.parametrize(("folder", "case", "number"), FIRST)
def test_an_example_is_emitted_for_every_version(folder, case, number):
    assert_source_runs_alike(folder, case, number, *VERSIONS[:-1])


@pytest.mark.parametrize(("folder", "case", "number"), ALL)
def test_the_verifier_finds_nothing_in_an_example(folder, case, number):
    assert verify(captured(folder, case, number)[0]) == []


def test_division_is_rejected_after_0_1_and_said_as_a_product_on_demand():
    case = next(p for p in FIRST if p.id.startswith("beta1-softmax_kernel-seed0"))
    program, expected = captured(*case.values)

    with pytest.raises(ProgramError, match="divide is not an operation"):
        emit(program)
    product = without_division(program)
    (rounded_twice,) = execute_program(product, arrays(*case.values[1:]))

    # Both roundings are within half an ulp, relative 2^-24 each; the quotient has one of them.
    exact = np.frombuffer(expected[0], np.float32).reshape(rounded_twice.shape)
    assert np.allclose(rounded_twice, exact, rtol=3 * 2.0**-24, atol=0)
    assert "op0=nl.multiply" in emit(product)


def test_a_mask_that_is_no_rectangle_is_no_program():
    (case,) = read_cases(ROOT / "examples" / "beta1_todo" / "cases.toml")[:1]

    with (
        use("beta1"),
        pytest.raises(UnsupportedError, match="do not give what the kernel gives"),
    ):
        capture(getattr(load(case.path), case.kernel), **arguments(case, 0))
