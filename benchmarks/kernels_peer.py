"""The public triton-viz's own NKI kernels for the functions of `kernels.py`, in its interpreter.

    TRITON_VIZ_CHECKOUT=DIR python benchmarks/kernels_peer.py [RUNS]

prints one JSON object for each workload: the least CPU time of RUNS (5) in milliseconds and how far
the result is from NumPy's, of the largest number. Only its interpreter of NKI 0.2 is loaded, not
the package around it, which needs torch and triton; the names that it replaces are the names of our
`nki`. Its rotary embedding turns two tensors at once: half its time counts. What it cannot run is
left out.
"""

# ruff: noqa: E402 - the number of BLAS threads is set before numpy is imported
from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from examples import cpu_ms, load  # type: ignore
from kernel_workloads import WORKLOADS, Workload, wide  # type: ignore

import nki_runtime

ENOUGH_MS = 5000
"""A workload that has taken this long is not run again: its float16 products take minutes."""
Arrays = dict[str, np.ndarray]


def interpreter(checkout: Path) -> ModuleType:
    """Its interpreter, which replaces functions of the `nki` in force."""
    for name in ("triton_viz", "triton_viz.core", "triton_viz.core.simulation", "triton_viz.utils"):
        package = sys.modules[name] = ModuleType(name)
        package.__path__ = [str(checkout.joinpath(*name.split(".")))]
    simulation = importlib.import_module("triton_viz.core.simulation.nki_beta2")
    import nki.language as nl  # type: ignore

    simulation.nki_patch_lang()
    for name in ("float32", "float16", "bfloat16"):  # dtypes are given by name
        setattr(nl, name, name)
    return simulation


def by_rows(given: Arrays) -> tuple[list[Any], np.ndarray]:
    """Its gains are a matrix, a row for each row."""
    x = given["x"]
    out, gains = np.empty_like(x), [a for name, a in given.items() if name == "gain"]
    return [x, *(np.broadcast_to(gain, x.shape).copy() for gain in gains), out], out


def product(given: Arrays) -> tuple[list[Any], np.ndarray]:
    first, last = given["lhs_t"], given["rhs"]
    out = np.empty((first.shape[1], last.shape[1]), first.dtype)
    return [first, last, out], out


def layers(given: Arrays) -> tuple[list[Any], np.ndarray]:
    out = np.empty((given["x_t"].shape[1], given["w2"].shape[1]), given["x_t"].dtype)
    return [*given.values(), out], out


def transposed(given: Arrays) -> tuple[list[Any], np.ndarray]:
    """Heads before positions, and angles for both halves."""
    x = np.ascontiguousarray(given["x"].swapaxes(0, 1))[None]
    angles = [np.concatenate([given[name]] * 2, axis=1) for name in ("cos", "sin")]
    out, other = np.empty_like(x), np.empty_like(x)
    batch, heads, positions, dim = x.shape
    arguments = [x, x.copy(), *angles, out, other, batch, heads, positions, dim]
    return arguments, out[0].swapaxes(0, 1)


def attended(given: Arrays) -> tuple[list[Any], np.ndarray]:
    q, k = (np.ascontiguousarray(given[name].swapaxes(1, 2))[None] for name in "qk")
    v = given["v"][None]
    out, n, dim = np.empty_like(q), q.shape[2], q.shape[3]
    return [q, k, v, out, 1, 1, 1, 1, n, n, dim, dim], out[0]


KERNELS: dict[str, tuple[str, Callable[[Arrays], tuple[list[Any], np.ndarray]], int]] = {
    "matmul": ("matmul.py", product, 1),
    "softmax": ("softmax.py", by_rows, 1),
    "rmsnorm": ("rmsnorm.py", by_rows, 1),
    "rope": ("rope.py", transposed, 2),
    "mlp": ("mlp.py", layers, 1),
    "attention": ("tiled_attention.py", attended, 1),
}
"""By the first word of a workload: its file, its arguments and result, how many it computes."""


def measure(simulation: ModuleType, checkout: Path, workload: Workload, runs: int) -> None:
    file, arrange, times = KERNELS[workload.name.split()[0]]
    module = load(checkout / "examples" / "nki_beta2" / file)
    (kernel,) = (f for name, f in vars(module).items() if name.endswith("_kernel"))
    given = workload.arguments()
    arguments, out = arrange({n: a for n, a in given.items() if isinstance(a, np.ndarray)})
    function = simulation.NKIBeta2InterpretedFunction(kernel)
    taken: list[float] = []
    while len(taken) < runs and sum(taken) < ENOUGH_MS:
        taken.append(cpu_ms(lambda: function.run(*arguments)))
    expected = wide(workload.reference(**given))
    error = float(np.abs(wide(out) - expected).max() / np.abs(expected).max())
    row = {"name": workload.name, "dtype": workload.dtype, "ms": min(taken) / times, "error": error}
    print(json.dumps(row), flush=True)


def main(runs: int) -> int:
    if not (folder := os.environ.get("TRITON_VIZ_CHECKOUT")):
        print("TRITON_VIZ_CHECKOUT names no checkout of triton-viz", file=sys.stderr)
        return 2
    checkout = Path(folder)
    with nki_runtime.use(nki="0.2"):
        simulation = interpreter(checkout)
        for workload in WORKLOADS:
            try:
                measure(simulation, checkout, workload, runs)
            except Exception as failed:  # any exception is a result
                said = f"{type(failed).__name__}: {failed}".splitlines()[0]
                print(f"{workload.name} {workload.dtype}: {said}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if sys.argv[1:] else 5))
