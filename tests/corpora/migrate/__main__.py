"""python -m tests.corpora.migrate: migrate nki-samples, print the table, keep it in a document."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tests.corpora.beta1.report import replace_part
from tests.corpora.migrate.tutorials import markdown, try_all


def main() -> int:
    """0 when it ran; 2 without clones."""
    parser = argparse.ArgumentParser("python -m tests.corpora.migrate")
    parser.add_argument("--corpus", type=Path, help="folder of clones (default: NKI_CORPUS)")
    parser.add_argument("--write", type=Path, metavar="FILE.md", help="keep the table there")
    options = parser.parse_args()
    corpus = options.corpus or os.environ.get("NKI_CORPUS")
    if not corpus:
        parser.error("NKI_CORPUS is not set: say where the clones lie, or give --corpus")
    table = markdown(try_all(Path(corpus)))
    print(table)
    if options.write:
        replace_part(options.write, "migrate", table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
