"""`nkigym tune`: search, prove, show, write."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

from neuroncore.errors import LaunchError
from neuroncore.program import Program, parse_program
from nkigym.cli.progress import Progress
from nkigym.cli.tuned import FORMATS, headed
from nkigym.cli.writing import check_place, write_kernel
from nkigym.search import STRATEGIES, Budget, BudgetError, Settings, parse_budget
from nkigym.tiles import TileProgram, parse_tiles
from nkigym.tuning import tune


def add_options(parser: argparse.ArgumentParser) -> None:
    """What to tune, how to search, where results go."""
    add = parser.add_argument
    add("kernel", metavar="MODULE:FUNCTION|FILE",
        help="a NumPy function or an @nki.jit kernel (module or FILE.py), or a file with a kernel "
        "program or a tile program")  # fmt: skip
    add("--spec", action="append", default=[], metavar="[NAME=]DTYPE[SHAPE]",
        help="an argument's shape and format, such as 'x=f32[512,64]'; once for each")  # fmt: skip
    add("--target", choices=("trn1", "trn2", "trn3"), help="(default: trn2, or the program's)")
    add("--nki", metavar="VERSION", help="of the source (default: 0.6, or the program's)")
    add("--budget", type=_budget, default=Budget(seconds=60), metavar="TIME|N",
        help="60s, 2min, or a number of candidates, which finds the same each time (default: 60s); "
        "proving the winner comes on top")  # fmt: skip
    add("--strategy", choices=tuple(STRATEGIES), default="descent",
        help="(default: descent)")  # fmt: skip
    add("--seed", type=int, default=0, metavar="N", help="negative: one that is drawn")
    add("--num-targets", type=int, metavar="N",
        help="random: stop once so many programs are deep enough")  # fmt: skip
    add("--min-depth", type=int, default=0, metavar="N", help="fewest steps of the winner")
    add("--max-depth", type=int, metavar="N", help="most steps of a candidate")
    add("--engines", metavar="NAME[,NAME]", help="those that a candidate may use")
    add("--store", metavar="FILE", help="keep what is found there, and do not ask for it again")
    add("-o", dest="output", type=Path, metavar="FILE.py", help="write the winner's source there")
    add("--force", action="store_true", help="write over a file that nkigym has not written")
    add("--output-format", choices=tuple(FORMATS), default="text")


def run(given: argparse.Namespace) -> int:
    """Prints the winner; 1 where the store could not keep everything."""
    if given.output is not None:
        check_place(given.output, given.force)
    kernel, specs = _kernel(given)
    progress = Progress(given.budget)
    try:
        tuned = tune(
            kernel,
            *specs,
            target=given.target,
            nki=given.nki,
            budget=given.budget,
            strategy=given.strategy,
            seed=given.seed,
            min_depth=given.min_depth,
            max_depth=inf if given.max_depth is None else given.max_depth,
            engines=None if given.engines is None else _names(given.engines),
            settings=Settings() if given.num_targets is None else Settings(given.num_targets),
            store=given.store,
            watcher=progress,
        )
    finally:
        progress.close()
    if given.output is not None:
        write_kernel(given.output, headed(tuned, given.kernel))
        tuned = replace(tuned, source="")
    print(FORMATS[given.output_format](tuned))
    if tuned.report.stopped == "interrupted":
        sys.stderr.write("nkigym: interrupted; this is the best so far\n")
    if tuned.trouble is not None:
        sys.stderr.write(f"nkigym: {type(tuned.trouble).__name__}: {tuned.trouble}\n")
        return 1
    return 0


def _kernel(
    given: argparse.Namespace,
) -> tuple[Program | TileProgram | Callable[..., Any], list[Any]]:
    """What is named, and its specs in order."""
    file = Path(given.kernel)
    if ":" not in given.kernel and file.is_file() and file.suffix != ".py":
        try:
            text = file.read_text("utf-8")
        except UnicodeDecodeError:
            raise LaunchError(f"{file} holds no text") from None
        if text.startswith("def "):
            return parse_tiles(text), list(given.spec)
        return parse_program(text, str(file)), list(given.spec)
    from nkigen_lite.cli.function import find_function, match_specs, parse_name

    with _language(given):
        function = find_function(parse_name(given.kernel))
    return function, list(match_specs(function, given.spec))


def _language(given: argparse.Namespace) -> AbstractContextManager[Any]:
    """For files that import nki; a vendor's package that is installed stays what they get."""
    from nki_runtime import ShadowError, use

    try:
        return use(nki=given.nki, target=given.target)
    except ShadowError:
        return nullcontext()


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _budget(text: str) -> Budget:
    try:
        return parse_budget(text)
    except BudgetError as wrong:
        raise argparse.ArgumentTypeError(f"{wrong.what}; expected {wrong.expected}") from None
