"""python -m tests.corpora.sdk_examples: run the SDK's example kernels, print and keep the table."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.corpora.beta1.report import replace_part
from tests.corpora.sdk_examples.cases import CASES, NOT_PYTHON
from tests.corpora.sdk_examples.run import Result, run_case
from tests.corpora.sdk_examples.sources import TAG, SourcesError, unpack

PART = "sdk_examples"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tests.corpora.sdk_examples")
    parser.add_argument("--checkout", type=Path, help="default: NEURON_SDK_CHECKOUT")
    parser.add_argument("--write", type=Path, metavar="FILE.md", help="keep the table there")
    return parser


def markdown(results: Sequence[Result]) -> str:
    """The table of a run."""
    good = sum(r.is_good for r in results)
    lines = [
        f"`{TAG}`: {good} of the {len(results)} kernels that Python can read do what they must.",
        "",
        "| file | kernel | target | outcome | |",
        "|---|---|---|---|---|",
    ]
    for r in results:
        case, detail = r.case, r.detail.replace("|", "\\|")
        lines.append(f"| {case.file} | {case.kernel} | {case.target} | {r.outcome} | {detail} |")
    lines += [f"| {file} | | | not Python | {why} |" for file, why in NOT_PYTHON.items()]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when every kernel did what it must, 1 otherwise, 2 for a wrong use."""
    parser = _parser()
    options = parser.parse_args(arguments)
    checkout = options.checkout or os.environ.get("NEURON_SDK_CHECKOUT")
    if not checkout:
        parser.error("NEURON_SDK_CHECKOUT is not set: say where aws-neuron-sdk lies, or --checkout")
    with tempfile.TemporaryDirectory(prefix="sdk-examples-") as folder:
        try:
            examples = unpack(Path(checkout), Path(folder))
        except SourcesError as wrong:
            parser.error(str(wrong))
        results = [run_case(case, examples) for case in CASES]
    table = markdown(results)
    print(table)
    if options.write:
        replace_part(options.write, PART, table)
    return int(not all(r.is_good for r in results))


if __name__ == "__main__":
    sys.exit(main())
