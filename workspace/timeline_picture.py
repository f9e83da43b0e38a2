"""The picture of the README, docs/timeline.svg: the modelled timeline of an example kernel."""

from __future__ import annotations

import runpy

from members import ROOT

import nki_runtime
from nki_runtime.trace import picture

SHAPES = ((1, 64, 512), (1, 64, 512), (1, 512, 64))


def main() -> None:
    """Print the SVG of examples/beta2/attention.py."""
    with nki_runtime.use(nki="0.6", target="trn2"):
        kernel = runpy.run_path(f"{ROOT}/examples/beta2/attention.py")["attention_kernel"]
        arrays = [(shape, "bfloat16") for shape in SHAPES]
        print(picture([nki_runtime.estimate(kernel, *arrays, 0.125)]), end="")


if __name__ == "__main__":
    main()
