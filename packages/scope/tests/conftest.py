"""Kernels, their pages, and a browser where one is installed."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import chromium
import ml_dtypes
import numpy as np
import pytest
from members import ROOT

import nki_runtime
from nki_scope import page

PageOf = Callable[..., Path]


@pytest.fixture(scope="session")
def browser() -> Iterator[chromium.Chromium]:
    if chromium.PATH is None:
        pytest.skip("no browser is installed: views are not tested (apt-get install chromium)")
    found = chromium.Chromium()
    yield found
    found.close()


@pytest.fixture
def page_of(tmp_path: Path) -> PageOf:
    """Writes the page of a kernel given as source text or a path, on arrays."""

    def write(source: str | Path, name: str, *arrays: Any, **kwargs: Any) -> Path:
        if isinstance(source, str):
            path = tmp_path / "kernels.py"
            path.write_text(source, encoding="utf-8")
        else:
            path = ROOT / source
        with nki_runtime.use(nki="0.7", target="trn2"):
            kernel = runpy.run_path(str(path))[name]
            return page(kernel, *arrays, file=tmp_path / f"{name}.html", **kwargs)

    return write


@pytest.fixture
def attention(page_of: PageOf) -> Path:
    rng = np.random.default_rng(0)
    shapes = (1, 64, 512), (1, 64, 512), (1, 512, 64)
    arrays = [rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in shapes]
    return page_of(Path("examples/beta2/attention.py"), "attention_kernel", *arrays, 0.125)
