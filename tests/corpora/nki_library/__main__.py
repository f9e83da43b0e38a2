"""python -m tests.corpora.nki_library: run the library's tests, or a sample; print the table."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from tests.corpora.beta1.report import replace_part
from tests.corpora.nki_library.groups import GROUPS, Limits, commit_of, run_groups
from tests.corpora.nki_library.migrated import EQUAL, run_migrated, verdicts
from tests.corpora.nki_library.migrated import markdown as migrated_markdown
from tests.corpora.nki_library.record import kept_rows, markdown, one_line, rows_of
from tests.corpora.nki_library.sample import (
    WRONG,
    Request,
    Sample,
    checkout_of,
    group_files,
    run_samples,
)
from tests.corpora.nki_library.sample import markdown as sample_markdown
from tests.corpora.nki_library.sample import one_line as sample_line

PART = "nki_library"
SAMPLE_PART = "nki_library_sample"
MIGRATED_PART = "nki_library_migrated"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tests.corpora.nki_library")
    parser.add_argument("--checkout", type=Path, help="default: NKI_LIBRARY_CHECKOUT")
    parser.add_argument("--only", help=f"groups, with commas between them: {', '.join(GROUPS)}")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time (default 1)")
    parser.add_argument("--seconds", type=float, help="limit for one test file (default none)")
    parser.add_argument("--memory", type=float, metavar="GIB", help="limit for one process")
    parser.add_argument("--sample", metavar="SEED", help="a sample of all groups, drawn by a seed")
    parser.add_argument("--tests", type=int, default=20, help="of a group's sample (default 20)")
    parser.add_argument("--to", metavar="NKI", help="the sample again, its kernels migrated to it")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="go on with the records there")
    parser.add_argument("--write", type=Path, metavar="FILE.md", help="keep the table there")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when all ran and passed, 1 otherwise, 2 for a wrong use."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if not options.sample:
        _names(parser, options, GROUPS)
    try:
        checkout = checkout_of(options.checkout)
    except ValueError as reason:
        parser.error(str(reason))
    return (_sample if options.sample else _whole)(parser, options, checkout)


def _names(
    parser: argparse.ArgumentParser, options: argparse.Namespace, known: Iterable[str]
) -> list[str]:
    """The groups that --only names, or all; ends the program for an unknown one."""
    groups = list(known)
    names = options.only.split(",") if options.only else groups
    if unknown := [name for name in names if name not in groups]:
        parser.error(f"no such group: {', '.join(unknown)}; there are {', '.join(groups)}")
    return names


def _sample(parser: argparse.ArgumentParser, options: argparse.Namespace, checkout: Path) -> int:
    groups = group_files(checkout)
    names = _names(parser, options, groups)
    request = Request(
        options.sample, options.tests, options.memory or 16, int(options.seconds or 300)
    )
    samples = run_samples(
        checkout,
        {name: groups[name] for name in names},
        request,
        jobs=options.jobs,
        keep=options.keep,
        tell=lambda sample: print(sample_line(sample), flush=True),
    )
    _show(options, SAMPLE_PART, sample_markdown(samples, request, commit_of(checkout)))
    if options.to:
        return _migrated(options, checkout, samples, request, groups)
    return int(any(sample.of("failed") or sample.of(WRONG) for sample in samples))


def _migrated(
    options: argparse.Namespace,
    checkout: Path,
    before: Sequence[Sample],
    request: Request,
    groups: Mapping[str, str],
) -> int:
    with tempfile.TemporaryDirectory(prefix="nki-library-") as folder:
        request = replace(request, nki=options.to)
        pairs = run_migrated(
            checkout, before, groups, request,
            folder=Path(folder), jobs=options.jobs, keep=options.keep,
        )  # fmt: skip
    _show(options, MIGRATED_PART, migrated_markdown(pairs, request, commit_of(checkout)))
    return int(any(word != EQUAL for pair in pairs for word, _ in verdicts(*pair).values()))


def _show(options: argparse.Namespace, part: str, text: str) -> None:
    print(text)
    if options.write:
        replace_part(options.write, part, text)


def _whole(parser: argparse.ArgumentParser, options: argparse.Namespace, checkout: Path) -> int:
    names = _names(parser, options, GROUPS)
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
