"""python -m tests.corpora.beta1: run the corpus, print the table, keep it in a document."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.corpora.beta1.catalog import Kernel, read_corpus
from tests.corpora.beta1.harness import Verdict, as_json, run_corpus, summary
from tests.corpora.beta1.report import markdown, one_line, replace_part

EXAMPLE = "example: NKI_CORPUS=~/corpus python -m tests.corpora.beta1 --repo nki-samples -v"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tests.corpora.beta1", epilog=EXAMPLE)
    parser.add_argument("--corpus", type=Path, help="folder of clones (default: NKI_CORPUS)")
    parser.add_argument("--repo", action="append", default=[], help="only repositories like this")
    parser.add_argument("--file", action="append", default=[], help="only files like this")
    parser.add_argument("--kernel", action="append", default=[], help="only this kernel")
    parser.add_argument("--jobs", type=int, default=2, help="children at a time (default 2)")
    parser.add_argument("-v", "--verbose", action="store_true", help="print whole reasons")
    parser.add_argument("--list", action="store_true", help="print the kernels, run nothing")
    parser.add_argument("--output-format", choices=("text", "json"), default="text")
    parser.add_argument("--write", type=Path, metavar="FILE.md", help="keep the table there")
    return parser


def chosen(kernels: Sequence[Kernel], options: argparse.Namespace) -> list[Kernel]:
    """The kernels that the filters leave."""

    def fits(text: str, patterns: Sequence[str]) -> bool:
        return not patterns or any(pattern in text for pattern in patterns)

    return [
        kernel
        for kernel in kernels
        if fits(kernel.file.repo, options.repo)
        and fits(kernel.file.path, options.file)
        and (not options.kernel or kernel.name in options.kernel)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when nothing differs or fails, 1 otherwise, 2 for a wrong use."""
    parser = _parser()
    options = parser.parse_args(arguments)
    corpus = options.corpus or os.environ.get("NKI_CORPUS")
    kernels = chosen(read_corpus(), options)
    if options.list:
        for kernel in kernels:
            print(f"{kernel.file.repo}  {kernel.file.path}  {kernel.name}  {len(kernel.cases)}")
        return 0
    if not corpus:
        parser.error("NKI_CORPUS is not set: say where the clones lie, or give --corpus")
    if options.write and len(kernels) < len(read_corpus()):
        parser.error("--write keeps the whole table: leave out --repo, --file and --kernel")

    def tell(verdict: Verdict) -> None:
        if options.output_format == "text":
            print(one_line(verdict, verbose=options.verbose), flush=True)

    verdicts = run_corpus(kernels, Path(corpus), options.jobs, tell)
    if options.output_format == "json":
        print(as_json(verdicts))
    else:
        print("  ".join(f"{key}: {value:.3g}" for key, value in summary(verdicts).items()))
    if options.write:
        replace_part(options.write, "beta1", markdown(verdicts))
    return int(any(verdict.word in ("differs", "fails") for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main())
