"""python -m tests.corpora.pairs: kernels migrated by their authors, and by the command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.corpora.pairs.pairs import find_pairs, table, to_read

EXAMPLE = "example: NKI_CORPUS=~/corpus python -m tests.corpora.pairs --read 10 --seed 1 --key key"


def main(arguments: Sequence[str] | None = None) -> int:
    """0, or 2 where no clones are named."""
    parser = argparse.ArgumentParser("python -m tests.corpora.pairs", epilog=EXAMPLE)
    parser.add_argument("--corpus", type=Path, help="folder of clones (default: NKI_CORPUS)")
    parser.add_argument("--read", type=int, default=0, metavar="N", help="N pairs in random order")
    parser.add_argument("--seed", type=int, default=0, help="of that order")
    parser.add_argument("--key", type=Path, metavar="FILE", help="keep there which text is whose")
    options = parser.parse_args(arguments)
    corpus = options.corpus or os.environ.get("NKI_CORPUS")
    if not corpus:
        parser.error("NKI_CORPUS is not set: name the folder of clones, or give --corpus")
    pairs = list(find_pairs(Path(corpus)))
    if not options.read:
        print(table(pairs))
        return 0
    texts, key = to_read(pairs, options.read, options.seed)
    print(texts)
    if options.key:
        options.key.write_text(key + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
