"""python -m tests.corpora.migration: migrate the corpus, run what came of it, print the table."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.corpora.beta1.catalog import CorpusFile, Kernel, read_corpus, read_files
from tests.corpora.beta1.report import replace_part
from tests.corpora.migration.cache import Cache, default_folder
from tests.corpora.migration.harness import FileTried, Migration, counts, try_all
from tests.corpora.migration.runs import Runner
from tests.corpora.migration.table import (
    as_json,
    classes,
    classes_text,
    closing_lines,
    file_problems,
    markdown,
    one_line,
)

EXAMPLE = "example: NKI_CORPUS=~/corpus python -m tests.corpora.migration --only nki-samples"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tests.corpora.migration", epilog=EXAMPLE)
    parser.add_argument("--corpus", type=Path, help="folder of clones (default: NKI_CORPUS)")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="TEXT",
        help="only files whose owner/name/path[:kernel] holds this; repeatable",
    )
    parser.add_argument("--jobs", type=int, default=2, help="files at a time (default 2)")
    parser.add_argument("--no-facts", action="store_true", help="migrate from the source alone")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep old and new texts there")
    parser.add_argument("--cache", type=Path, default=default_folder(), help="outcomes of runs")
    parser.add_argument("--fresh", action="store_true", help="run everything again")
    parser.add_argument("--json", type=Path, metavar="FILE", help="everything, for machines")
    parser.add_argument("--classes", type=Path, metavar="FILE", help="what is left, by kinds")
    parser.add_argument("--write", type=Path, metavar="FILE.md", help="keep the table there")
    return parser


def chosen(only: Sequence[str]) -> list[tuple[CorpusFile, list[Kernel]]]:
    """The files that `--only` leaves, each with its entry kernels."""
    kernels = read_corpus()
    found = []
    for file in read_files():
        own = [kernel for kernel in kernels if kernel.file == file]
        name = f"{file.repo}/{file.path}"
        if only and not any(text in name for text in only):
            own = [k for k in own if any(text in f"{name}:{k.name}" for text in only)]
            if not own:
                continue
        found.append((file, own))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when no text is bad and no kernel wrong, 1 otherwise, 2 for a wrong use."""
    parser = _parser()
    options = parser.parse_args(arguments)
    corpus = options.corpus or os.environ.get("NKI_CORPUS")
    if not corpus:
        parser.error("NKI_CORPUS is not set: say where the clones lie, or give --corpus")
    if options.write and options.only:
        parser.error("--write keeps the whole table: leave out --only")
    files = chosen(options.only)
    done = 0

    def tell(tried: FileTried) -> None:
        nonlocal done
        done += 1
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{done}/{len(files)} files\x1b[K")
        for text in file_problems(tried):
            print(f"{'FILE':16}{tried.file.repo.partition('/')[2]}/{tried.file.path}  {text}")
        for kernel in tried.kernels:
            print(one_line(tried, kernel))
        sys.stdout.flush()

    runner = Runner(Cache(options.cache, fresh=options.fresh))
    migration = Migration(Path(corpus), runner, not options.no_facts, options.keep)
    tried = try_all(files, migration, options.jobs, tell)
    print(closing_lines(tried))
    if options.json:
        options.json.write_text(as_json(tried), encoding="utf-8")
    if options.classes:
        options.classes.write_text(classes_text(classes(tried)), encoding="utf-8")
    if options.write:
        replace_part(options.write, "migration", markdown(tried))
    numbers = counts(tried)
    bad = ("crash", "unparsable", "second run changes", "untouched lines changed", "WRONG")
    return int(any(numbers[what] for what in bad))


if __name__ == "__main__":
    sys.exit(main())
