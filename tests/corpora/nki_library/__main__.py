"""python -m tests.corpora.nki_library: run the library's tests, print and keep the table."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.corpora.beta1.report import replace_part
from tests.corpora.nki_library.groups import GROUPS, TESTS, Limits, commit_of, run_groups
from tests.corpora.nki_library.record import kept_rows, markdown, one_line, rows_of

PART = "nki_library"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tests.corpora.nki_library")
    parser.add_argument("--checkout", type=Path, help="default: NKI_LIBRARY_CHECKOUT")
    parser.add_argument("--only", help=f"groups, with commas between them: {', '.join(GROUPS)}")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time (default 1)")
    parser.add_argument("--seconds", type=float, help="limit for one test file (default none)")
    parser.add_argument("--memory", type=float, metavar="GIB", help="limit for one process")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="go on with the records there")
    parser.add_argument("--write", type=Path, metavar="FILE.md", help="keep the table there")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when all ran and passed, 1 otherwise, 2 for a wrong use."""
    parser = _parser()
    options = parser.parse_args(arguments)
    names = options.only.split(",") if options.only else list(GROUPS)
    if unknown := [name for name in names if name not in GROUPS]:
        parser.error(f"no such group: {', '.join(unknown)}; there are {', '.join(GROUPS)}")
    checkout = options.checkout or os.environ.get("NKI_LIBRARY_CHECKOUT")
    if not checkout:
        parser.error("NKI_LIBRARY_CHECKOUT is not set: say where nki-library lies, or --checkout")
    checkout = Path(checkout).resolve()
    if not (checkout / TESTS).is_dir():
        parser.error(f"{checkout} is not a checkout of nki-library: it has no {TESTS}")
    results = run_groups(
        checkout,
        names,
        jobs=options.jobs,
        limits=Limits(options.seconds, options.memory),
        keep=options.keep,
        tell=lambda result: print(one_line(result), flush=True),
    )
    commit, date = commit_of(checkout), f"{datetime.now(UTC):%Y-%m-%d}"
    rows = {result.group: rows_of(result, date) for result in results}
    print(markdown(rows, commit, names))
    if options.write:
        mine = options.write.read_text(encoding="utf-8").partition(f"<!-- {PART}: end -->")[0]
        earlier = kept_rows(mine, commit, list(GROUPS))
        replace_part(options.write, PART, markdown(earlier | rows, commit, list(GROUPS)))
    return int(any(r.of("failed") or r.not_run or r.trouble for r in results))


if __name__ == "__main__":
    sys.exit(main())
