"""python -m tests.corpora.random_kernels: migrate random kernels, run both texts, compare."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.corpora.random_kernels.trial import BAD, PRELOAD, try_seeds

from tokenplan.executors.options import add_executor, executor_of

EXAMPLE = "example: python -m tests.corpora.random_kernels --seed 0 --count 200 --jobs 2"


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when nothing that was called complete fails or differs, and nothing changes twice."""
    parser = argparse.ArgumentParser("python -m tests.corpora.random_kernels", epilog=EXAMPLE)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=200, help="how many seeds")
    parser.add_argument("--facts", action="store_true", help="with facts of a run")
    parser.add_argument("--all", action="store_true", help="print what is left, too")
    add_executor(parser)
    options = parser.parse_args(arguments)
    seeds = range(options.seed, options.seed + options.count)
    with TemporaryDirectory() as folder:
        executor = executor_of(options, "random_kernels", PRELOAD, Path(folder))
        tried = try_seeds(seeds, executor, with_facts=options.facts)
    for seed, (word, reason) in tried.items():
        if word in BAD or (options.all and word == "todo"):
            print(f"{word:10}seed {seed}: {reason}")
    words = Counter(word for word, _ in tried.values())
    print(f"{options.count} kernels from seed {options.seed}: {dict(words)}")
    return int(any(words[word] for word in BAD))


if __name__ == "__main__":
    sys.exit(main())
