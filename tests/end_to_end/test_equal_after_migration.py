"""Examples, generated and tuned kernels as 0.6 and migrated to 0.7: results equal to the bit."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generated import examples
from members import ROOT
from tests.examples.test_examples import (
    LANGUAGES,
    arguments,
    as_tuple,
    launched,
    load,
    quick_cases,
)
from tests.generated.test_versions import SMALL, made, written

import nki_runtime
from neuroncore.program import emit
from nki_migrate.engine.migration import migrate_source
from nki_migrate.settings.request import Request
from nki_migrate.verify.cases import Case
from nkigen_lite import as_spec
from nkigen_lite.cli.generated_source import normal_inputs
from nkigym import tune

# beta1_todo is what a migration leaves to a person; examples/tile_ir has no kernels of NKI.
CASES = [case for case in quick_cases() if case.values[0] != "beta1_todo"]


def migrated(source: Path, old: str, new: str, folder: Path) -> Path:
    """The file in another version; nothing of it remains for a person."""
    request = Request(source_version=old, target=new)
    text = migrate_source(source.read_text(encoding="utf-8"), source.name, request).after
    assert "TODO" not in text
    path = folder / source.name
    path.write_text(text, encoding="utf-8")
    return path


def results(path: Path, version: str, run: Callable[[Any], Any], **options: Any) -> list[Any]:
    """Type, shape and bytes of each result of `run(module)`."""
    with nki_runtime.use("beta2", nki=version, **options):
        arrays = [np.asarray(array) for array in as_tuple(run(load(path)))]
    return [(array.dtype, array.shape, array.tobytes()) for array in arrays]


@pytest.mark.parametrize(("folder", "case", "number"), CASES)
def test_an_example_computes_the_same(folder: str, case: Case, number: int, tmp_path: Path):
    def run(module: Any) -> Any:
        return launched(getattr(module, case.kernel), case)(**arguments(case, number))

    older = case.path
    if LANGUAGES[folder][1] == "0.1":
        older = migrated(case.path, "0.1", "0.6", tmp_path)
    (newer := tmp_path / "newer").mkdir()
    newer = migrated(older, "0.6", "0.7", newer)

    assert results(newer, "0.7", run, **case.options) == results(older, "0.6", run, **case.options)


@pytest.mark.parametrize("example", examples(), ids=lambda e: e.name)
def test_a_kernel_of_the_gallery_computes_the_same(example, tmp_path):
    specs = [as_spec(spec) for spec, _ in example.arguments.values()]
    example.generate(older := tmp_path / example.kernel, "--nki", "0.6")

    inputs = [*normal_inputs(specs, seed=0), *example.constants()]
    assert_same(older, example.name, inputs, tmp_path)


@pytest.mark.parametrize("name", SMALL)
def test_a_kernel_of_the_benchmark_computes_the_same(name, tmp_path):
    kernel = made(name, "0.6")
    inputs = normal_inputs([as_spec(spec) for spec in SMALL[name][1]], seed=0)

    assert_same(written(kernel, tmp_path), kernel.program.name, kernel.inputs(*inputs), tmp_path)


@pytest.mark.parametrize("file", sorted((ROOT / "examples/gym").glob("*.py")), ids=lambda f: f.stem)
def test_a_kernel_that_was_tuned_computes_the_same(file, tmp_path):
    example = runpy.run_path(str(file))
    program = tune(example[file.stem], *example["SMALL"], budget=20).program
    inputs = [
        np.random.default_rng(i).standard_normal(p.shape).astype(p.dtype.storage)
        for i, p in enumerate(program.parameters)
    ]
    (older := tmp_path / "older.py").write_text(emit(program, "0.6"), encoding="utf-8")

    assert_same(older, program.name, inputs, tmp_path)


def assert_same(older: Path, kernel: str, inputs: Sequence[np.ndarray], folder: Path) -> None:
    (folder / "newer").mkdir()
    newer = migrated(older, "0.6", "0.7", folder / "newer")

    def run(module: Any) -> Any:
        return getattr(module, kernel)(*(array.copy() for array in inputs))

    assert results(newer, "0.7", run) == results(older, "0.6", run)
