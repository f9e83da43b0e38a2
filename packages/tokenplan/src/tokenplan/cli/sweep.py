"""`tokenplan sweep`: compile only the parameters of a Tile IR kernel that can win."""

from __future__ import annotations

import argparse
import ast
import json
import sys
from dataclasses import asdict
from math import inf
from pathlib import Path

from neuroncore.commands.function import find_function, parse_name
from neuroncore.commands.parser import add_output_format, at_least
from tokenplan.cli.kernels import UsageError
from tokenplan.executors.options import add_executor, executor_of
from tokenplan.tile_ir import compiler
from tokenplan.tile_ir.candidates import ORDERINGS
from tokenplan.tile_ir.results import Store
from tokenplan.tile_ir.sweep import PRELOAD, Sweep, sweep
from tokenplan.tile_ir.verdicts import ARCHITECTURES


def add_options(parser: argparse.ArgumentParser) -> None:
    """The kernel, its parameters, and limits."""
    add = parser.add_argument
    add("kernel", metavar="FILE.py:FUNCTION",
        help="a function that returns a TileKernel, or MODULE:FUNCTION")  # fmt: skip
    add("--set", action="append", default=[], metavar="NAME=VALUE,...", type=_choices,
        help="the values of a parameter: --set block=64,128; given twice, all of them")  # fmt: skip
    add("--target", default="sm_90", choices=ARCHITECTURES, metavar="ARCH",
        help="architecture (default sm_90)")  # fmt: skip
    add("--store", type=Path, default=Path("sweep.sqlite"), help="results (default sweep.sqlite)")
    add("--budget", type=at_least(1), default=600, metavar="SECONDS",
        help="after which nothing new is compiled (default 600)")  # fmt: skip
    add("--limit", type=at_least(1), default=60, metavar="SECONDS",
        help="of one compilation (default 60)")  # fmt: skip
    add("--most", type=at_least(1), metavar="N", help="compilations, at most")
    add_executor(parser)
    add("--order", choices=ORDERINGS, default="model", help="which are compiled first")
    add_output_format(parser, tuple(_FORMATS))


def run(given: argparse.Namespace) -> int:
    """Prints the funnel and the candidates; 1 where none was compiled."""
    absent = compiler.missing("tileiras", "nvdisasm", "cuobjdump")
    if absent:
        raise UsageError(absent)
    compiler.version()
    make = find_function(parse_name(given.kernel))
    store = Store(given.store)
    executor = executor_of(given, "tokenplan", PRELOAD, given.store.resolve().parent)
    space: dict[str, list[object]] = {}
    for name, values in given.set:
        space.setdefault(name, []).extend(values)
    found = sweep(
        make, space, store, executor, given.target, given.budget, given.limit,
        given.order, given.most,
    )  # fmt: skip
    shown = _FORMATS[given.output_format](found, store)  # an error has the reasons, too
    sys.stderr.write("".join(f"tokenplan: lost {what}\n" for what in found.funnel.lost))
    for reason, count in found.funnel.reasons.items():
        sys.stderr.write(f"tokenplan: {count} {reason}\n")
    print(shown)
    return 0


def _text(found: Sweep, store: Store) -> str:
    best, result = found.best()
    shown = ", ".join(f"{name}={value}" for name, value in best.parameters.items())
    stored = store.versions()
    versions = ", ".join(f"{count} of {name or 'others'}" for name, count in stored.items())
    return (
        f"{found.funnel.text()}\n"
        f"best of {len(found.evaluated)}: {shown or 'the only candidate'} "
        f"({result.registers} registers, {result.shared_bytes} bytes shared, "
        f"{result.barriers} barriers, {result.instructions} instructions), "
        f"tileiras {result.compiler}\n"
        f"results in {store.path} by version of tileiras: {versions}"
    )


def _json(found: Sweep, store: Store) -> str:
    """The candidates in the order in which they were evaluated, and the number of the best."""
    rows = [
        {"parameters": {k: repr(v) for k, v in candidate.parameters.items()},
         "cost": None if result.error else result.cost(candidate.steps), **asdict(result)}
        for candidate, result in found.evaluated
    ]  # fmt: skip
    best = found.evaluated.index(found.best())
    curve = [{"seconds": s, "cost": None if c == inf else c} for s, c in found.curve()]
    document = {"funnel": asdict(found.funnel), "best": best, "candidates": rows, "curve": curve}
    return json.dumps({**document, "store": str(store.path)}, indent=1)


_FORMATS = {"text": _text, "json": _json}


def _choices(text: str) -> tuple[str, list[object]]:
    name, equals, values = text.partition("=")
    if not name or not equals or not values:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE,...")
    return name, [_value(value) for value in values.split(",")]


def _value(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
