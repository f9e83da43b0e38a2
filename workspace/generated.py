"""`python workspace/generated.py`: every kernel of examples/generated/, generated again."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from members import ROOT

FOLDER = ROOT / "examples" / "generated"


@dataclass(frozen=True, slots=True)
class Example:
    """A NumPy function of the folder, the file of its kernel, and what its arguments are.

    arguments: name → (spec, scale of the standard normal numbers of a run), in order. `ulps` bounds
    the difference from NumPy, in ulps of the result's largest number.
    """

    function: str
    kernel: str
    ulps: float
    arguments: Mapping[str, tuple[str, float]]

    @property
    def name(self) -> str:
        """Of the function, and so of the kernel."""
        return self.function.rpartition(":")[2]

    def constants(self) -> list[np.ndarray]:
        """The arrays that the kernel takes behind its arguments."""
        file = (FOLDER / self.kernel).with_suffix(".npz")
        return [*np.load(file).values()] if file.exists() else []

    def generate(self, output: Path, *options: str, folder: Path = FOLDER) -> None:
        """Write the kernel to `output`. Raises CalledProcessError."""
        specs = [w for n, (spec, _) in self.arguments.items() for w in ("--spec", f"{n}={spec}")]
        command = [sys.executable, "-m", "nkigen_lite", self.function, *specs, "-o", str(output)]
        subprocess.run([*command, *options], cwd=folder, check=True)


def examples() -> list[Example]:
    """What kernels.toml lists."""
    text = (FOLDER / "kernels.toml").read_text(encoding="utf-8")
    return [
        Example(
            row["function"],
            row["kernel"],
            row["ulps"],
            {n: (a["spec"], a.get("scale", 1.0)) for n, a in row["arguments"].items()},
        )
        for row in tomllib.loads(text)["kernel"]
    ]


if __name__ == "__main__":
    for example in examples():
        example.generate(FOLDER / example.kernel)
