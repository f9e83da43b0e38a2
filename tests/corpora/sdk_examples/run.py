"""Runs one case under 0.6 and says what came of it."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
from tests.corpora.sdk_examples.cases import Case
from tests.corpora.sdk_examples.references import Expected

import nki_runtime
from neuroncore.errors import KernelError


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a case: `matches`, `rejected` as it must be, `differs` or `fails`; and more."""

    case: Case
    outcome: str
    detail: str

    @property
    def is_good(self) -> bool:
        return self.outcome == ("rejected" if self.case.rejected else "matches")


def run_case(case: Case, examples: Path) -> Result:
    """The kernel of the case, called as its own file would, and compared with the reference."""
    with nki_runtime.use(nki="0.6", target=case.target), _environment():
        try:
            kernel = getattr(_module(examples / case.file), case.kernel)
            results = kernel(*case.arguments())
        except KernelError as error:
            text = str(error)
            rejected = bool(case.rejected) and case.rejected in text
            return Result(case, "rejected" if rejected else "fails", _first_line(text, examples))
    if case.reference is None:
        return Result(case, "fails", "it ran, and was to be rejected")
    expected = case.reference(*case.arguments())
    return _compared(case, results, expected)


def _compared(
    case: Case,
    results: np.ndarray | tuple[np.ndarray, ...],
    wanted: Expected | tuple[Expected, ...],
) -> Result:
    pairs = list(
        zip(
            results if isinstance(results, tuple) else (results,),
            wanted if isinstance(wanted, tuple) else (wanted,),
            strict=True,
        )
    )
    off = [_times_allowed(result, expected) for result, expected in pairs]
    exact = all(not expected.error.any() for _, expected in pairs)
    if not all(part <= 1 for part in off):
        return Result(case, "differs", f"by {max(off):.3g} times what its formats allow")
    return Result(case, "matches", "exactly" if exact else f"{max(off):.2g} of what is allowed")


def _times_allowed(result: np.ndarray, expected: Expected) -> float:
    if result.shape != expected.values.shape:
        return np.inf
    distance = np.abs(result.astype(np.float64) - expected.values)
    if not np.isfinite(distance).all():
        return np.inf
    allowed = expected.error
    times = np.divide(distance, allowed, out=np.zeros(distance.shape), where=allowed > 0)
    return np.inf if distance[allowed == 0].any() else float(times.max())


def _module(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem.replace("-", "_"), file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def _environment() -> Iterator[Mapping[str, str]]:
    """Examples that set variables for themselves set them for themselves only."""
    before = dict(os.environ)
    try:
        yield before
    finally:
        os.environ.clear()
        os.environ.update(before)


def _first_line(text: str, examples: Path) -> str:
    return text.splitlines()[0].replace(f"{examples}/", "")
