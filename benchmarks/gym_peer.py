"""The same searches by a checkout of the public package (awslabs/nki-autotune), on this machine.

    NKI_AUTOTUNE_CHECKOUT=DIR python benchmarks/gym_peer.py tiles K,M,N [VISITS]
    NKI_AUTOTUNE_CHECKOUT=DIR python benchmarks/gym_peer.py loops VISITS

prints one JSON object. `tiles` is the search of tile programs of 28 February 2026, which its own
history holds (no steps but its own, no execution): all of the space, or so many visits of its
random growth. `loops` is a random walk over the transforms that are checked out, from its matmul of
2048³; it needs networkx, and has our `nki`. A program of its own because the public package and
ours have the same import name.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import random
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import ml_dtypes
import numpy as np

import nki_runtime

COMMIT = "3545b5d"
"""Of 28 February 2026, the last with the search of tile programs as facts about it were taken."""

SEED = 7

_DEVICE = (
    "neuronxcc", "neuronxcc.nki_standalone", "nkipy", "nkipy.core", "nkipy.core.backend",
    "nkipy.core.backend.hlo", "nkipy.core.compile", "nkipy.runtime",
)  # fmt: skip
"""What compiles and runs on a device: imported, never called here."""

_TILES = """
import nkigym

def matmul(A, B):
    return nkigym.nc_matmul(A, B)
"""

_LOOPS = """
from nkigym.ops import nkigym_kernel
from nkigym.ops.load import NKILoad
from nkigym.ops.matmul import NKIMatmul
from nkigym.ops.store import NKIStore
from nkigym.ops.tensor_copy import NKITensorCopy

@nkigym_kernel
def matmul(lhs_T, rhs):
    left = NKILoad()(src=lhs_T)
    right = NKILoad()(src=rhs)
    product = NKIMatmul()(stationary=left, moving=right)
    copied = NKITensorCopy()(src=product)
    out = NKIStore()(src=copied)
    return out
"""


def tiles(checkout: Path, folder: Path, given: list[str]) -> dict[str, Any]:
    """The space of a matmul in tiles, or so many visits of it."""
    packed = subprocess.run(
        ["git", "-C", str(checkout), "archive", COMMIT], capture_output=True, check=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder / "public", filter="data")
    sys.path.insert(0, str(folder / "public" / "nkigym" / "src"))
    for name in _DEVICE:
        sys.modules[name] = MagicMock()
    k, m, n = (128 * int(number) for number in given[0].split(","))
    visits = int(given[1]) if len(given) > 1 else None
    function = _imported(folder, "tiles_of_the_peer", _TILES).matmul
    ir, tiling, search, transforms, utils = (
        importlib.import_module(f"nkigym.{name}")
        for name in ("ir", "tiling", "search.search", "transforms", "utils")
    )
    shapes = {"A": (k, m), "B": (k, n)}
    source = utils.callable_to_source(function)
    root = tiling.tile_program(ir.source_to_program(source, shapes, np.dtype(np.float32)))
    rng, began = random.Random(SEED), time.process_time()
    graph = search._TransformGraph(
        root, [transforms.DataReuseTransform(), transforms.OperandMergeTransform()]
    )
    while graph.frontier and (visits is None or graph.total_programs_visited <= visits):
        graph.expand_one(rng)
    return {
        "tiles": given[0], "unique": len(graph.nodes), "visited": graph.total_programs_visited,
        "cpu_s": round(time.process_time() - began, 3),
    }  # fmt: skip


def loops(checkout: Path, folder: Path, given: list[str]) -> dict[str, Any]:
    """A random walk over the loop transforms; the root again where nothing is left to do."""
    sys.path.insert(0, str(checkout / "nkigym" / "src"))
    nki_runtime.use(nki="0.6")
    kernel = _imported(folder, "loops_of_the_peer", _LOOPS).matmul
    environment = importlib.import_module("nkigym.environment")
    transforms = importlib.import_module("nkigym.transforms")
    every = [
        getattr(transforms, name)()
        for name in ("Split", "Fuse", "Reorder", "ComputeAt", "ReverseComputeAt")
    ]
    shapes = dict.fromkeys(("lhs_T", "rhs"), ((2048, 2048), "bfloat16"))
    world = environment.KernelMDP(kernel, shapes, every)
    rng, state = random.Random(SEED), world.reset()
    began, rejected = time.process_time(), 0
    for _ in range(int(given[0])):
        actions = world.legal_actions(state)
        try:
            state = world.step(state, rng.choice(actions)) if actions else world.reset()
        except transforms.TransformLegalityError:
            rejected += 1
    spent = time.process_time() - began
    return {
        "visits": int(given[0]),
        "rejected": rejected,
        "ms_a_visit": spent / int(given[0]) * 1e3,
    }


def _imported(folder: Path, name: str, text: str) -> Any:
    """A module of this text: the public package reads functions as source."""
    (folder / f"{name}.py").write_text(text, "utf-8")
    sys.path.insert(0, str(folder))
    return importlib.import_module(name)


def main(given: list[str]) -> int:
    checkout = os.environ.get("NKI_AUTOTUNE_CHECKOUT")
    if not checkout:
        print("NKI_AUTOTUNE_CHECKOUT names no checkout of awslabs/nki-autotune", file=sys.stderr)
        return 2
    assert ml_dtypes  # bfloat16 by name
    with tempfile.TemporaryDirectory() as folder:
        found = {"tiles": tiles, "loops": loops}[given[0]](Path(checkout), Path(folder), given[1:])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({**found, "peak_mb": round(peak)}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
