"""Kernels, their pages, and a browser where one is installed."""

from __future__ import annotations

import base64
import json
import re
import runpy
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from chromium import PATH, Chromium
from members import ROOT

import nki_runtime
from nki_scope import page

AXE = ROOT / "packages" / "scope" / "web" / "node_modules" / "axe-core" / "axe.min.js"
PageOf = Callable[..., Path]
KEYS = {"Enter": 13, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39,
        "ArrowDown": 40, "Tab": 9}  # fmt: skip


class Audited(Chromium):
    """A browser with a keyboard, that audits pages."""

    def barriers(self) -> list[Any]:
        """What axe-core finds serious or critical in what is shown now."""
        if not AXE.is_file():
            pytest.skip("axe-core is not installed (npm ci in packages/scope/web): no audit")
        self.run(AXE.read_text("utf-8") + ";0")
        return self.run(
            "axe.run().then(r => r.violations.filter(v => ['serious', 'critical']"
            ".includes(v.impact)).map(v => [v.id, v.nodes.map(n => n.html).slice(0, 3)]))"
        )

    def press(self, key: str) -> None:
        code = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS.get(key, ord(key[0]))}
        text = {} if key in KEYS and key != "Enter" else {"text": "\r" if key == "Enter" else key}
        self._send("Input.dispatchKeyEvent", type="keyDown", **code, **text)
        self._send("Input.dispatchKeyEvent", type="keyUp", **code)


@pytest.fixture(scope="session")
def browser() -> Iterator[Audited]:
    if PATH is None:
        pytest.skip("no browser is installed: views are not tested (apt-get install chromium)")
    found = Audited()
    yield found
    found.close()


@pytest.fixture
def page_of(tmp_path: Path) -> PageOf:
    """Writes the page of a kernel given as source text or a path, on arrays, as users get it."""

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


def _data_of(file: Path) -> tuple[dict[str, Any], list[np.ndarray]]:
    """The document of a page, and its columns as another program would read them."""
    found = re.search(r'id="data">([^<]*)<', file.read_text("utf-8"))
    assert found is not None
    raw = zlib.decompress(base64.b64decode(found[1]))
    magic, rest = raw[:12], raw[16:]
    size = int.from_bytes(raw[12:16], "little")
    assert magic == b"nki-scope 2\n"
    document, rest = json.loads(rest[:size]), rest[size:]
    lengths = dict(sorted(_references(document)))
    columns, at = [], 0
    for length in lengths.values():
        planes = np.frombuffer(rest[at : at + 4 * length], np.uint8).reshape(4, length)
        steps = (planes.astype(np.int64) * (256 ** np.arange(4))[:, None]).sum(0)
        columns.append(np.cumsum(steps).astype(np.uint32).astype(np.int32))
        at += 4 * length
    assert at == len(rest)
    return document, columns


def _references(value: Any) -> list[tuple[int, int]]:
    if isinstance(value, dict) and value.keys() == {"column", "length"}:
        return [(value["column"], value["length"])]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [pair for part in inner for pair in _references(part)]


@pytest.fixture
def data_of() -> Callable[[Path], tuple[dict[str, Any], list[np.ndarray]]]:
    return _data_of
