"""python -m tests.corpora.nki_library.fp8: the library's codes of fp8, in ulps from float64."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.corpora.beta1.report import replace_part
from tests.corpora.nki_library.groups import CHILD, child_environment, commit_of

PART = "nki_library_fp8"
HEAD = """\
`rmsnorm_quant` at `{commit}`, (1, 160, 2048) elements on two cores: codes (float8_e4m3) that differ
from the formula in float64, rounded once, and from the formula rounded to bfloat16 where the kernel
keeps a tile in it; how far at most, in ulps; and a row's factor (float32) in ulps of the latter.

| quantisation | normalised | input | bound | once: codes | ulps | stored: codes | ulps | row |
|---|---|---|--:|--:|--:|--:|--:|--:|
"""


def measure(checkout: Path) -> list[dict[str, Any]]:
    """Run the kernel on every case in a process of its own."""
    command = (sys.executable, "-W", "ignore", str(CHILD / "nki_library_fp8.py"))
    done = subprocess.run(
        command, cwd=checkout, env=child_environment(checkout), stdout=subprocess.PIPE, check=True
    )
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def table(cases: Sequence[dict[str, Any]], commit: str) -> str:
    """A row per case."""
    return HEAD.format(commit=commit) + "".join(map(_row, cases))


def _row(found: dict[str, Any]) -> str:
    kind, normalised, dtype, bound = found["case"]
    once, stored = found["once"], found["stored"]
    factor = "" if stored["factor_ulps"] is None else stored["factor_ulps"]
    cells = (
        kind, "yes" if normalised else "no", dtype, bound or "",
        once["different"], once["ulps"], stored["different"], stored["ulps"], factor,
    )  # fmt: skip
    return "| " + " | ".join(map(str, cells)) + " |\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when no code is more than one ulp away, else 1."""
    parser = argparse.ArgumentParser("python -m tests.corpora.nki_library.fp8")
    parser.add_argument("--checkout", type=Path, default=os.environ.get("NKI_LIBRARY_CHECKOUT"))
    parser.add_argument("--write", type=Path, metavar="FILE.md", help="keep the table there")
    options = parser.parse_args(arguments)
    if options.checkout is None:
        parser.error("NKI_LIBRARY_CHECKOUT is not set: say where nki-library lies, or --checkout")
    checkout = Path(options.checkout).resolve()
    cases = measure(checkout)
    text = table(cases, commit_of(checkout))
    print(text)
    if options.write:
        replace_part(options.write, PART, text)
    return int(any(found[how]["ulps"] > 1 for found in cases for how in ("once", "stored")))


if __name__ == "__main__":
    sys.exit(main())
