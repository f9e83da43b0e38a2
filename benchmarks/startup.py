"""CPU time from the start of Python to a first answer, beyond that of importing NumPy.

    python benchmarks/startup.py            the least of five runs, in milliseconds
    python benchmarks/startup.py --migrate  nki-migrate from its start to its end, beside libcst

Bytecode is written first, as pip does when it installs. Goals: 120 ms for an import, 600 ms for an
import and a first use; 250 ms for `nki-migrate check` of a file without NKI, 400 ms of a small
kernel, 550 ms for `fix` of it, NumPy and Python included, and 20 files per second on two cores.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

RUNS = 5
PACKAGES = (
    "nki_dtypes", "neuroncore", "nki_runtime", "nki_beta1", "nki_beta2", "nkigen_lite", "tokenplan",
    "nkigym", "nki_scope", "nki_migrate",
)  # fmt: skip
KERNEL = """\
import numpy as np
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def double(x):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=result, src=tile)
    return result
"""
CALL = "double(np.ones((4, 4), np.float32))\n"
ESTIMATE = (
    "import nki_runtime; nki_runtime.use(shadow=True)\n"
    f"{KERNEL}nki_runtime.estimate(double, ((4, 4), 'float32'))\n"
)
SOFTMAX = """\
import numpy as np

def softmax(x):
    raised = np.exp(x - x.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)
"""
OLD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def double(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x[0:128, 0:64])
    nl.store(out[0:128, 0:64], value=tile * 2.0)
    return out
"""
HOST = "import numpy as np\n\n\ndef double(x):\n    return np.asarray(x) * 2\n"
MIGRATE = ("-m", "nki_migrate")
COMMANDS = {
    "nki-migrate check of a file without NKI": (*MIGRATE, "check", "host.py"),
    "nki-migrate check of a small kernel": (*MIGRATE, "check", "--exit-zero", "old.py"),
    "nki-migrate fix of a small kernel": (*MIGRATE, "fix", "old.py", "--output-dir", "fixed"),
}
USES = {
    "nki-run of a small kernel": ("-m", "nki_runtime", "kernel.py"),
    "nkigen of softmax": ("-m", "nkigen_lite", "softmax.py:softmax", "--spec", "f32[256,512]"),
    "nki_runtime.estimate of a small kernel": ("estimate.py",),
    "nki-migrate check of a file": ("-m", "nki_migrate", "check", "--exit-zero", "kernel.py"),
}


def cpu_ms(*arguments: str, folder: Path, runs: int = RUNS) -> float:
    """The least CPU time of some runs of Python."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    times = []
    for _ in range(runs + 1):  # the first one writes bytecode
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, *arguments], cwd=folder, env=environment, check=True,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times[1:]) * 1e3


def files_per_second(folder: Path, count: int = 40) -> float:
    """Files per second of `check` on two cores: of two seconds of CPU time, start-up included."""
    many = folder / "many"
    many.mkdir()
    for number in range(count):
        (many / f"kernel_{number}.py").write_text(OLD)
    words = (*MIGRATE, "check", "--exit-zero", "-q", "-j", "2", "many")
    return 2e3 * count / cpu_ms(*words, folder=folder, runs=2)


def print_migrate() -> None:
    """Print a line for every command of nki-migrate: CPU time, and over that of a peer."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "host.py").write_text(HOST)
        (folder / "old.py").write_text(OLD)
        peer = cpu_ms("-c", "import libcst", folder=folder)
        print(f"import libcst: {peer:.0f} ms")
        for use, arguments in COMMANDS.items():
            spent = cpu_ms(*arguments, folder=folder)
            print(f"{use}: {spent:.0f} ms, {spent / peer:.2f} x import libcst")
        print(f"nki-migrate check on two cores: {files_per_second(folder):.0f} files/s")


def main() -> None:
    """Print a line for every import and every first use."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = {"kernel.py": KERNEL + CALL, "softmax.py": SOFTMAX, "estimate.py": ESTIMATE}
        for file, text in files.items():
            (folder / file).write_text(text)
        numpy = cpu_ms("-c", "import numpy", folder=folder)
        print(f"import numpy: {numpy:.0f} ms")
        for package in PACKAGES:
            spent = cpu_ms("-c", f"import numpy, {package}", folder=folder) - numpy
            print(f"import {package}: {max(spent, 0):.0f} ms")
        for use, arguments in USES.items():
            print(f"{use}: {cpu_ms(*arguments, folder=folder) - numpy:.0f} ms")


if __name__ == "__main__":
    print_migrate() if "--migrate" in sys.argv[1:] else main()
