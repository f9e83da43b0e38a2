"""examples/generated: the kernels are what nkigen writes, mean what NumPy says, pass the checks."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from generated import FOLDER, Example, examples

import nki_runtime
import nkigen_lite
from neuroncore.checks.subset import check_script
from nkigen_lite.tensors.ulps import difference

EVERY = pytest.mark.parametrize("example", examples(), ids=lambda e: e.name)
NAMES = "memory,capacity,subset,device,race,traps"


@EVERY
def test_the_kernel_is_what_is_generated_today(example: Example, tmp_path: Path):
    """When this fails after an intended change: python workspace/generated.py"""
    example.generate(tmp_path / example.kernel)

    for file in tmp_path.iterdir():
        assert file.read_bytes() == (FOLDER / file.name).read_bytes()


def test_every_file_of_the_folder_is_listed():
    listed = {e.kernel for e in examples()} | {e.function.partition(":")[0] for e in examples()}

    assert {path.name for path in FOLDER.glob("*.py")} == listed


@pytest.fixture
def imports(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Files of the folder import each other, and are forgotten afterwards."""
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(FOLDER)):
            del sys.modules[name]


def load(file: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"of_{Path(file).stem}", FOLDER / file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@EVERY
def test_the_kernel_is_as_near_to_numpy_as_its_example_says(example: Example, imports: None):
    rng = np.random.default_rng(0)
    shapes = [
        (tuple(map(int, spec.partition("[")[2][:-1].split(","))), scale)
        for spec, scale in example.arguments.values()
    ]
    arrays = [(rng.standard_normal(s) * scale).astype(np.float32) for s, scale in shapes]
    function = getattr(load(example.function.partition(":")[0]), example.name)

    with nki_runtime.use(nki="0.6", target="trn2"):
        ours = getattr(load(example.kernel), example.name)(
            *(a.copy() for a in arrays), *example.constants()
        )

    found = difference(ours, function(*(a.astype(np.float64) for a in arrays)))
    assert found.ulps_of_largest is not None
    assert found.ulps_of_largest <= example.ulps


@EVERY
def test_the_kernel_passes_every_check_of_nki_run(example: Example):
    specs = [spec for spec, _ in example.arguments.values()]
    specs += [f"{array.dtype}{list(array.shape)}" for array in example.constants()]
    command = (sys.executable, "-m", "nki_runtime", "--check", NAMES)
    kernel = f"{example.kernel}:{example.name}"

    done = subprocess.run(
        (*command, kernel, *specs), capture_output=True, text=True, cwd=FOLDER, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("version", ["0.2", "0.3", "0.4", "0.5", "0.6"])
@EVERY
def test_every_versions_compiler_takes_the_source(example, version, imports, tmp_path):
    function = getattr(load(example.function.partition(":")[0]), example.name)
    specs = [spec for spec, _ in example.arguments.values()]
    path = tmp_path / "kernel.py"
    path.write_text(nkigen_lite.compile(function, *specs, nki=version).source)

    assert check_script(path, version) == []
