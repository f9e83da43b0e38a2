"""`python workspace/latencies.py EXAMPLES`: modelled latencies of the example kernels.

For every case of the cases.toml files below the folder EXAMPLES: device, latency and bottleneck
as `nki_runtime.estimate` prints them. `replay.py` runs it in two checkouts.
"""

from __future__ import annotations

import importlib.util
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import nki_runtime

LANGUAGES = {"beta1": ("beta1", "0.1"), "beta2": ("beta2", "0.7"), "tokenplan": ("beta2", "0.7")}
MODES = ("as_written", "device")


def cases(folder: Path) -> Iterator[dict[str, Any]]:
    """The cases of one folder of examples."""
    yield from tomllib.loads((folder / "cases.toml").read_text(encoding="utf-8"))["case"]


def load(path: Path, name: str) -> Callable[..., Any]:
    """The kernel called `name` of a file that is not on the import path."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def argument(entry: dict[str, Any]) -> Any:
    """Zeros of the argument's shape and dtype, or its value."""
    if "shape" not in entry:
        return entry.get("value")
    dtype = getattr(ml_dtypes, entry["dtype"], None) or entry["dtype"]
    return np.zeros(entry["shape"], dtype)


def latencies(folder: Path) -> Iterator[str]:
    """One block of text per case and mode."""
    backend, nki = LANGUAGES[folder.name]
    with nki_runtime.use(backend, nki=nki):
        for number, case in enumerate(cases(folder)):
            kernel = load(folder / case["file"], case["kernel"])
            arguments = {entry["name"]: argument(entry) for entry in case["arg"]}
            for mode in MODES:
                yield f"# {folder.name}/{case['file']}:{case['kernel']} {number} {mode}"
                yield str(nki_runtime.estimate(kernel, **arguments, mode=mode))


def main(examples: Path) -> int:
    """Print the latencies of every folder."""
    for name in LANGUAGES:
        for text in latencies(examples / name):
            print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
