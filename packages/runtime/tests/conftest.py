"""A world with two fake languages, no vendor package and a clean environment."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

SITE = Path(__file__).parent / "site"
VARIABLES = (
    "NKI_RUNTIME",
    "NKI_RUNTIME_VERSION",
    "NEURON_PLATFORM_TARGET_OVERRIDE",
    "NKI_PRECISE_FP",
    "NKI_SIMULATOR",
)


def answered() -> dict[str, int]:
    """Identities of all modules that a switch could touch."""
    roots = {"nki", "neuronxcc"}
    return {n: id(m) for n, m in sys.modules.items() if n.partition(".")[0] in roots}


@pytest.fixture(autouse=True)
def fake_languages(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The fake languages are installed; after each test sys.modules is as before."""
    monkeypatch.syspath_prepend(str(SITE))
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    before = answered()
    yield
    assert answered() == before


@pytest.fixture
def modules() -> Callable[[], dict[str, int]]:
    return answered


@pytest.fixture
def vendor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed package `nki` and a package `neuronxcc` with `neuronxcc.nki`, neither ours."""
    site = tmp_path / "vendor"
    for package in ("nki", "neuronxcc", "neuronxcc/nki"):
        (site / package).mkdir(parents=True)
        (site / package / "__init__.py").write_text("made_by = 'vendor'\n")
        (site / package / "language.py").write_text("made_by = 'vendor'\n")
    monkeypatch.syspath_prepend(str(site))
    yield site
    for name in [n for n in sys.modules if n.partition(".")[0] in {"nki", "neuronxcc"}]:
        del sys.modules[name]


@pytest.fixture
def nki_run(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`nki-run` in a child process, in `tmp_path`, with the fake languages installed."""

    def run(
        *args: str, stdin: str | IO[str] | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        base = {k: v for k, v in os.environ.items() if k not in VARIABLES}
        paths = [str(SITE), environment.pop("PYTHONPATH", "")]
        base["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        return subprocess.run(
            [sys.executable, "-m", "nki_runtime", *args],
            cwd=tmp_path,
            env=base | environment,
            input=stdin if isinstance(stdin, str) else None,
            stdin=None if isinstance(stdin, str) else stdin,
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., str]:
    """Writes a program into `tmp_path`; gives its name."""

    def write(text: str, name: str = "program.py") -> str:
        (tmp_path / name).write_text(text)
        return name

    return write
