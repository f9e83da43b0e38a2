"""The language called directly: no switch, and nothing under the names that kernels import."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from neuroncore.errors import KernelError
from nki_beta2 import BACKEND, language


@dataclass(frozen=True)
class Speaker:
    """One version of the language, and short ways to use it."""

    version: str
    nki: ModuleType
    nl: ModuleType
    nisa: ModuleType

    def run(self, kernel: Callable[..., Any], *arrays: Any, **more: Any) -> Any:
        """What `kernel`, decorated in this version, gives for the arguments."""
        return self.nki.jit(kernel)(*arrays, **more)

    def inside(self, block: Callable[[], Any]) -> Any:
        """What `block` gives when it runs inside a kernel."""
        seen = []
        self.run(lambda: seen.append(block()))
        return seen[0]

    def out(self, tile: Any) -> Any:
        """A new kernel output with the elements of an SBUF tile."""
        out = self.nl.ndarray(tile.shape, dtype=tile.dtype, buffer=self.nl.shared_hbm)
        self.nisa.dma_copy(dst=out, src=tile)
        return out

    def tile(self, source: Any) -> Any:
        """A new SBUF tile with the elements of an HBM tensor."""
        tile = self.nl.ndarray(source.shape, dtype=source.dtype, buffer=self.nl.sbuf)
        self.nisa.dma_copy(dst=tile, src=source)
        return tile


def speaker(version: str, target: str = "trn2", **options: Any) -> Speaker:
    return Speaker(version, *language(version, target, **options))


@pytest.fixture(autouse=True)
def no_switch() -> Iterator[None]:
    yield
    assert not {"nki", "neuronxcc"} & sys.modules.keys()


@pytest.fixture
def speak() -> Callable[..., Speaker]:
    """`speak(version, target, **options)`."""
    return speaker


@pytest.fixture
def now() -> Speaker:
    """The newest version."""
    return speaker("0.6")


@pytest.fixture(params=BACKEND.versions)
def every(request: pytest.FixtureRequest) -> Speaker:
    """Each version in turn."""
    return speaker(request.param)


@pytest.fixture
def ramp() -> np.ndarray:
    """(4, 8): 0, 1, 2, …"""
    return np.arange(32, dtype=np.float32).reshape(4, 8)


@pytest.fixture
def complaint(tmp_path: Path) -> Callable[..., str]:
    """The text of the error that a kernel file ends in, its folder left out.

    The file's last line calls the kernel; `arrays` are names that it uses.
    """

    def complain(source: str, version: str = "0.6", target: str = "trn2", **arrays: Any) -> str:
        path = tmp_path / "kernel.py"
        path.write_text(source)
        nki, nl, nisa = language(version, target)
        names = {"nki": nki, "nl": nl, "nisa": nisa, "__name__": "kernel", **arrays}
        with pytest.raises(KernelError) as caught:
            exec(compile(source, str(path), "exec"), names)
        return str(caught.value).replace(f"{tmp_path}/", "")

    return complain
