"""python -m tests.corpora.styles: migrate the kernels of this folder, run them, print the table."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.corpora.styles.harness import HERE, all_cases, try_file

EXAMPLE = "example: python -m tests.corpora.styles --only masks --keep migrated"


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when no kernel that was called complete fails or is wrong."""
    parser = argparse.ArgumentParser("python -m tests.corpora.styles", epilog=EXAMPLE)
    parser.add_argument("--only", default="", metavar="TEXT", help="files whose name contains it")
    parser.add_argument("--no-facts", action="store_true", help="migrate from the source alone")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the new texts there")
    options = parser.parse_args(arguments)
    words: Counter[str] = Counter()
    for path in sorted(p for p in (HERE / "kernels").glob("*.py") if options.only in p.name):
        cases = [case for case in all_cases() if case.path == path]
        for tried in try_file(path, cases, with_facts=not options.no_facts, keep=options.keep):
            words[tried.word] += 1
            rules = ", ".join(f"{r} ×{n}" for r, n in sorted(Counter(tried.rules).items()))
            print(f"{tried.word:16}{tried.file}: {tried.kernel}  {rules}  {tried.reason}".rstrip())
            sys.stdout.flush()
    ran = sum(words.values()) - words["not under beta1"]
    print(f"{sum(words.values())} kernels, {ran} run under beta1: {dict(words)}")
    return int(words["WRONG"] + words["fails"] + words["crash"] > 0)


if __name__ == "__main__":
    sys.exit(main())
