"""Loops of the device from 0.6 to 0.7: nothing remains, and the results are equal to the bit."""

from __future__ import annotations

import importlib.util
import inspect
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from nki_migrate.engine.migration import migrate_source
from nki_migrate.settings.request import Request
from nki_runtime import use

FOLDER = Path(__file__).parent / "device_loops"


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


REFERENCES = _load(FOLDER / "references.py")
KERNELS = sorted(n for n, f in vars(REFERENCES).items() if inspect.isfunction(f) and n[0] != "_")
TEXT = (FOLDER / "kernels.py").read_text(encoding="utf-8")
_ROWS = np.random.default_rng(0).integers(-8, 9, (8, 8)).astype(np.float32)
INPUTS = {
    "x": [_ROWS],
    "count": [np.array([[n]], np.int32) for n in (1, 2, 8)],
    "first": [np.array([[n]], np.int32) for n in (0, 1, 7)],
    "indices": [np.array([[3], [0], [7], [3]], np.int32)],
    "lengths": [np.array([[2], [0], [1], [5]], np.int32), np.zeros((4, 1), np.int32)],
    "following": [np.array([[3], [7], [0], [2], [6], [1], [5], [4]], np.int32)],
    "start": [np.array([[n]], np.int32) for n in (0, 1, 200)],
    "counts": [np.array([[2], [0], [1], [3]], np.int32)],
}
OTHERS = {
    ("for_in_while", "counts"): [np.array([[n]], np.int32) for n in (0, 2, 6)],
    ("through_a_helper", "x"): [np.full((8, 1), -1, np.int32)],
}


def arguments(kernel: str) -> list[dict[str, np.ndarray]]:
    """The inputs of a kernel: where one has several forms, one case for each."""
    names = list(inspect.signature(getattr(REFERENCES, kernel)).parameters)
    forms = {name: OTHERS.get((kernel, name), INPUTS[name]) for name in names}
    most = max(map(len, forms.values()))
    return [{name: form[i % len(form)] for name, form in forms.items()} for i in range(most)]


@pytest.fixture(scope="module")
def migrated(tmp_path_factory):
    result = migrate_source(TEXT, "kernels.py", Request(source_version="0.6", target="0.7"))
    path = tmp_path_factory.mktemp("migrated") / "kernels.py"
    path.write_text(result.after, encoding="utf-8")
    return path


def run(path: Path, version: str, kernel: str) -> list[tuple[np.ndarray, ...]]:
    results = []
    with use("beta2", nki=version):
        function = getattr(_load(path), kernel)
        for given in arguments(kernel):
            result = function(**{name: value.copy() for name, value in given.items()})
            results.append(result if isinstance(result, tuple) else (result,))
    return results


def test_nothing_remains_to_do(migrated):
    text = migrated.read_text(encoding="utf-8")

    assert "TODO" not in text
    assert "dynamic_range" not in text and "while more" not in text


@pytest.mark.parametrize("start", ["auto", "0.6"])
def test_migration_is_idempotent(migrated, start):
    text = migrated.read_text(encoding="utf-8")

    assert migrate_source(text, "kernels.py", Request(start, "0.7")).after == text


@pytest.mark.parametrize("kernel", KERNELS)
def test_results_are_equal_to_the_bit_and_right(kernel, migrated):
    old, new = run(FOLDER / "kernels.py", "0.6", kernel), run(migrated, "0.7", kernel)

    for given, before, after in zip(arguments(kernel), old, new, strict=True):
        expected = getattr(REFERENCES, kernel)(**given)
        expected = expected if isinstance(expected, tuple) else (expected,)
        assert [a.tobytes() for a in after] == [b.tobytes() for b in before]
        for result, wanted in zip(after, expected, strict=True):
            assert np.array_equal(result, wanted)
