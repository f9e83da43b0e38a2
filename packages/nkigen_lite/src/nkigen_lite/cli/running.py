"""The emitted source run by the languages' runtime in a process of its own, beside NumPy."""

from __future__ import annotations

import importlib.util
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuroncore.errors import LaunchError
from nki_dtypes import bool_, cast
from nkigen_lite.cli.function_error import users_code
from nkigen_lite.compile import Compiled
from nkigen_lite.spec import Spec
from nkigen_lite.ulps import Difference, difference

_NEEDED = ("nki_runtime", "nki_beta2")
_DRIVER = """\
import pickle
from pathlib import Path

from generated_kernel import {name} as kernel

folder = Path(__file__).parent
found = kernel(*pickle.loads((folder / "inputs").read_bytes()))
found = found if isinstance(found, tuple) else (found,)
(folder / "results").write_bytes(pickle.dumps(found))
"""


class RunError(LaunchError):
    """The source does not run; what the runtime said is in `output`."""

    def __init__(self, output: str) -> None:
        super().__init__("the generated source does not run")
        self.place = None
        self.output = output


def check_runtime() -> None:
    """Raises LaunchError where the runtime is not installed."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise LaunchError(
            f"--run needs {' and '.join(missing)}", hint="pip install 'nkigen-lite[run]'"
        )


def normal_inputs(specs: Sequence[Spec], seed: int) -> list[np.ndarray]:
    """Standard normal arrays; integers of -8 to 8 (0 to 8 without a sign); bool at random."""
    rng = np.random.default_rng(seed)
    return [_filled(rng, spec) for spec in specs]


def _filled(rng: np.random.Generator, spec: Spec) -> np.ndarray:
    if spec.dtype is bool_:
        return rng.integers(0, 2, spec.shape).astype(np.bool_)
    if spec.dtype.is_integer:
        low = 0 if spec.dtype.name.startswith("u") else -8
        return rng.integers(low, 9, spec.shape).astype(spec.storage)
    return cast(rng.standard_normal(spec.shape).astype(np.float32), spec.dtype)


def run_source(kernel: Compiled, source: str, arrays: Sequence[np.ndarray]) -> Any:
    """What `source`, the kernel's, gives under the runtime, as the function would give it; arrays
    that it writes to are updated.

    Raises RunError.
    """
    with tempfile.TemporaryDirectory(prefix="nkigen-") as name:
        folder = Path(name)
        (folder / "generated_kernel.py").write_text(source, encoding="utf-8")
        driver = folder / "run_generated_kernel.py"
        driver.write_text(_DRIVER.format(name=kernel.program.name), encoding="utf-8")
        (folder / "inputs").write_bytes(pickle.dumps(kernel.inputs(*arrays)))
        program = kernel.program
        options = ("--backend", "beta2", "--nki", program.nki, "--target", program.target)
        command = (sys.executable, "-m", "nki_runtime", *options, "--shadow", str(driver))
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RunError(done.stdout + done.stderr)
        return kernel.results(pickle.loads((folder / "results").read_bytes()), arrays)


@dataclass(frozen=True, slots=True)
class Found:
    """One result, or an argument that was written to, and how far it is from NumPy's in float64."""

    name: str
    array: np.ndarray
    difference: Difference

    def __str__(self) -> str:
        kind = f"{self.array.dtype}{list(self.array.shape)}"
        return f"{self.name}, {kind}: from NumPy in float64: {self.difference}"


def compare(
    kernel: Compiled, source: str, function: Callable[..., Any], arrays: Sequence[np.ndarray]
) -> list[Found]:
    """The source and the function on the same numbers. Raises RunError."""
    wide = [np.array(a, dtype=None if a.dtype.kind in "iub" else np.float64) for a in arrays]
    ours = _several(run_source(kernel, source, arrays))
    said = f"{getattr(function, '__name__', 'the function')}, in float64,"
    with np.errstate(all="ignore"), users_code(said):
        exact = _several(function(*wide))
    pairs = [(f"result {n}", *pair) for n, pair in enumerate(zip(ours, exact, strict=True))]
    written = {name for name, _ in kernel.graph.writes}
    pairs += [
        (f"argument {n}", arrays[n], wide[n])
        for n, value in enumerate(kernel.graph.inputs)
        if value.name in written
    ]
    return [Found(name, mine, difference(mine, truth)) for name, mine, truth in pairs]


def _several(results: Any) -> Sequence[Any]:
    return results if isinstance(results, (tuple, list)) else (results,)
