"""The switch over the real languages: every test leaves sys.modules as it found it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

VARIABLES = (
    "NKI_RUNTIME",
    "NKI_RUNTIME_VERSION",
    "NEURON_PLATFORM_TARGET_OVERRIDE",
    "NKI_PRECISE_FP",
    "NKI_SIMULATOR",
)


@pytest.fixture(autouse=True)
def clean_slate(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No environment variable speaks, and no switch outlives its test."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    before = _answered()
    yield
    assert _answered() == before


def _answered() -> dict[str, int]:
    roots = {"nki", "neuronxcc"}
    return {n: id(m) for n, m in sys.modules.items() if n.partition(".")[0] in roots}
