"""The same workloads through a checkout of the public package (aws-neuron/nkipy, any commit that
has nkigen-lite), lowered on this machine: what its kernels would execute and move.

    NKIPY_CHECKOUT=DIR python benchmarks/generator_peer.py [NAME …]

prints one JSON object for each workload. Its kernels are unrolled, so its operations are executed
instructions, except calls that only name memory. It is a program of its own because the public
package and ours have the same import name.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import ml_dtypes
import numpy as np

NO_INSTRUCTION = frozenset(
    {"alloc", "dealloc", "view", "access_pattern", "scalar_const", "broadcast"}
)
"""Records of its tile graph that name memory and execute nothing."""

_GENERATED = ("xla.xla_data_pb2", "xla.service.hlo_pb2")
"""Modules that its build generates for another backend than the one asked here."""


def peer(checkout: Path) -> tuple[ModuleType, ModuleType]:
    """Its tracer and its lowering."""
    folders = checkout / "nkigen-lite" / "src", checkout / "nkipy" / "src"
    for folder in folders:
        if not folder.is_dir():
            sys.exit(
                f"{folder}: not in the checkout of aws-neuron/nkipy; NKIPY_CHECKOUT names one of a "
                "commit that has nkigen-lite"
            )
    sys.path[:0] = map(str, folders)
    for name in _GENERATED:
        package, _, module = f"nkipy.third_party.{name}".rpartition(".")
        stand_in = sys.modules[f"{package}.{module}"] = MagicMock()
        setattr(importlib.import_module(package), module, stand_in)
    return (
        importlib.import_module("nkipy.core.trace"),
        importlib.import_module("nkigen_lite.tensor_ir.passes.lower_to_nki"),
    )


def counts(graph: Any) -> dict[str, float]:
    """Executed instructions, DMAs, and bytes at the HBM side."""
    instructions = dmas = moved = 0
    for op in graph.ops:
        instructions += op.opcode not in NO_INSTRUCTION
        if op.opcode == "dma_copy":
            dmas += 1
            hbm = op.inputs[1] if op.attrs["direction"] == "load" else op.inputs[0]
            moved += int(np.prod(op.attrs["sizes"])) * _itemsize(hbm)
    return {"instructions": instructions, "dmas": dmas, "mib": moved / 2**20}


def _itemsize(value: Any) -> int:
    return {"f32": 4, "tf32": 4, "i32": 4, "u32": 4}.get(str(value.type.dtype.value), 2)


def main(names: list[str]) -> int:
    checkout = os.environ.get("NKIPY_CHECKOUT")
    if not checkout:
        print("NKIPY_CHECKOUT names no checkout of aws-neuron/nkipy", file=sys.stderr)
        return 2
    from generator_workloads import WORKLOADS

    trace, lowering = peer(Path(checkout))
    for workload in WORKLOADS:
        if names and workload.name not in names:
            continue
        arrays = [_zeros(spec) for spec in workload.specs]
        kernel = trace.NKIPyKernel.trace(workload.function, backend="nkigen-lite")
        try:
            graph = lowering.lower_to_nki(kernel.specialize(*arrays)._graph)
        except Exception as failed:  # any exception is a result
            said = f"{type(failed).__name__}: {failed}".splitlines()[0]
            print(json.dumps({"name": workload.name, "failed": said}), flush=True)
            continue
        print(json.dumps({"name": workload.name, **counts(graph)}), flush=True)
    return 0


def _zeros(spec: str) -> np.ndarray:
    dtype, _, shape = spec.rstrip("]").partition("[")
    kind = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "i32": np.int32}[dtype]
    return np.zeros([int(n) for n in shape.split(",") if n], kind)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
