"""`tokenplan explain`: the token graph of a kernel, for people and for machines."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuroncore.commands.files import naming_output, write_output, write_whole
from neuroncore.commands.parser import (
    add_output,
    add_output_format,
    add_specs,
    add_target,
    at_least,
)
from neuroncore.commands.reporting import add_report, write_report
from neuroncore.program import Program
from neuroncore.surface import DEFAULT_VERSION
from neuroncore.targets import resolve_target
from neuroncore.timeline import estimate
from tokenplan import neuroncore
from tokenplan.analysis import analyse
from tokenplan.cli.kernels import KernelSource, UsageError
from tokenplan.graph.token_graph import Claim, Join, Parallel, Pipeline, TokenGraph
from tokenplan.neuroncore import AsyncPlan
from tokenplan.report import dot, explained, orders, plan_file
from tokenplan.rules import BUDGET
from tokenplan.tile_ir import TileKernel, is_bytecode, orders_of
from tokenplan.tile_ir.bytecode_report import Report, listed, reported
from tokenplan.tile_ir.verdicts import ARCHITECTURES, first_target


@dataclass(frozen=True, slots=True)
class Explained:
    """The input of a format."""

    program: Program
    graph: TokenGraph
    verbose: bool
    plan: AsyncPlan | None = None
    """The schedule, where it is requested."""


def _text(found: Explained) -> str:
    text = explained(found.graph, found.verbose)
    if found.plan is None:
        return text
    return f"{text}\n{neuroncore.scheduled(found.graph, found.plan, found.program)}"


def _json(found: Explained) -> str:
    return plan_file.write(found.graph, found.plan.as_json() if found.plan else None)


def _trace(found: Explained) -> str:
    plan = found.plan or neuroncore.schedule(found.graph, found.program)
    played = neuroncore.play(found.graph, plan, found.program)
    return neuroncore.trace_json(found.graph, played)


FORMATS: dict[str, Callable[[Explained], str]] = {
    "text": _text,
    "json": _json,
    "dot": lambda found: dot(found.graph, found.verbose),
    "perfetto": _trace,
}
"""What --output-format offers."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """KERNEL and everything about it."""
    add = parser.add_argument
    add("kernel", metavar="KERNEL",
        help="FILE.py:FUNCTION, MODULE:FUNCTION, the file of a program text, or of Tile IR "
        "bytecode; the function is an NKI kernel, or returns a TileKernel")  # fmt: skip
    add_specs(
        parser, "an argument of the kernel, by name or in order: x=f32[1024,64]; or NAME=VALUE"
    )
    add(
        "--nki",
        default=DEFAULT_VERSION,
        metavar="VERSION",
        help=f"NKI version (default {DEFAULT_VERSION})",
    )
    add_target(parser)
    add("--claim", action="append", default=[], metavar="LOOP=CLAIM",
        help="k=parallel: iterations of k need no order; "
        "'k=pipeline(2)': 2 may be in flight")  # fmt: skip
    add("--join", action="append", default=[], metavar="A,B", type=_two_names,
        help="operation B waits for A, independent of the bytes they access")  # fmt: skip
    add("--may-alias", action="append", default=[], metavar="A,B", type=_two_names,
        help="parameters A and B may share bytes: all accesses to them stay in order")  # fmt: skip
    add("--distinct", action="append", default=[], metavar="A,B", type=_two_names,
        help="Tile IR bytecode: parameters A and B share no byte, although its tokens order "
        "accesses to them")  # fmt: skip
    add("--budget", type=at_least(1), default=BUDGET, metavar="N",
        help="steps of the exact search per pair of accesses, beyond which it gives up and the "
        f"order is kept (default {BUDGET:,})")  # fmt: skip
    add_output_format(parser, tuple(FORMATS))
    add_output(parser, "where to write it (default: stdout)")
    add("--schedule", action="store_true",
        help="also find queues, buffer slots and waits, and how long that takes")  # fmt: skip
    add_report(parser)
    add("--rewrite", type=Path, metavar="FILE",
        help="Tile IR bytecode: write it with the tokens that it needs")  # fmt: skip
    add("--unchecked", action="store_true",
        help="Tile IR bytecode: --rewrite also what the checker cannot execute")  # fmt: skip
    add("--compile", default="", choices=ARCHITECTURES, metavar="ARCH",
        help="Tile IR bytecode: count the barriers of both for sm_90 or another one, and "
        "list the compiler's remarks on each access")  # fmt: skip
    add("--verbose", action="store_true", help="every order that was removed, one by one")


def run(given: argparse.Namespace) -> int:
    """Writes the explanation; 1 where a claim is false."""
    if is_bytecode(Path(given.kernel)):
        return _bytecode(given)
    _reject(given, _OF_BYTECODE, "a function or a program text")
    target = resolve_target(given.target).name
    claims = tuple(_claims(given))
    source = KernelSource(given.kernel, given.spec, given.nki, target)
    program = source.program()
    if isinstance(program, TileKernel):
        return _described(given, program)
    graph = analyse(
        program, claims, given.budget, verified=source.is_function, may_alias=given.may_alias
    )
    plan = neuroncore.schedule(graph, program) if given.schedule else None
    text = FORMATS[given.output_format](Explained(program, graph, given.verbose, plan))
    _write(given, text)
    write_report("tokenplan", given, _results, program, graph)
    return int(any(found.is_error for found in graph.diagnostics))


def _results(program: Program, graph: TokenGraph) -> dict[str, Any]:
    """The contents of --report."""
    timelines = [estimate(program, mode="as_written", verified=True)]
    return {"timelines": timelines, "orders": orders(graph)}


def _write(given: argparse.Namespace, text: str) -> None:
    if given.output is None:
        sys.stdout.write(text)
    else:
        write_output("tokenplan", "-o", given.output, text)


def _described(given: argparse.Namespace, kernel: TileKernel) -> int:
    """The orders of a described Tile IR kernel, and its tokens."""
    shared = ("spec", "verbose")
    options = {name: default for name, default in _OF_PROGRAMS.items() if name not in shared}
    cure = "arrays of one `alias_group=` may share bytes" if given.may_alias else "leave it away"
    _reject(given, {**options, "may_alias": []}, "a Tile IR description", cure)
    described = kernel.described()
    found = orders_of(described, given.budget, first_target(described))
    tokens = "\n".join(listed("tokens in its bytecode", found.kept))
    _write(given, f"{explained(found.graph, given.verbose)}\n{tokens}\n")
    return int(any(entry.is_error for entry in found.graph.diagnostics))


def _bytecode(given: argparse.Namespace) -> int:
    """The report on Tile IR bytecode."""
    _reject(given, _OF_PROGRAMS, "Tile IR bytecode")
    try:
        data = Path(given.kernel).read_bytes()
    except OSError as wrong:
        raise UsageError(f"cannot read {given.kernel}: {wrong.strerror}") from None
    found = reported(
        data, given.may_alias, given.budget, given.compile, distinct=given.distinct,
        unchecked=given.unchecked,
    )  # fmt: skip
    _write(given, found.text)
    if given.rewrite is None or (reason := _reason(found)):
        if given.rewrite is not None:
            sys.stderr.write(f"tokenplan: {given.rewrite} is not written: {reason}\n")
        return int(bool(given.rewrite or found.contradicted))
    with naming_output("--rewrite", given.rewrite):
        write_whole(given.rewrite, lambda aside: aside.write_bytes(found.data))
    return 0


def _reason(found: Report) -> str:
    """The reason not to rewrite the file, or nothing."""
    if found.contradicted:
        return f"the checker finds an order that {found.contradicted[0]} would lose"
    if found.unchecked:
        name = found.unchecked[0]
        return f"the checker cannot execute {name}; --unchecked to rewrite it without a check"
    return ""


_OF_PROGRAMS = {"spec": [], "nki": DEFAULT_VERSION, "target": "trn2", "verbose": False,
                "claim": [], "join": [], "schedule": False, "report": None,
                "output_format": "text"}  # fmt: skip
_OF_BYTECODE = {"rewrite": None, "compile": "", "distinct": [], "unchecked": False}
"""Options of one kind of kernel alone, with their defaults."""


def _reject(
    given: argparse.Namespace, options: Mapping[str, object], kind: str, cure: str = "leave it away"
) -> None:
    wrong = [name for name, default in options.items() if getattr(given, name) != default]
    if wrong:
        shown = ", ".join("arguments" if n == "spec" else f"--{n.replace('_', '-')}" for n in wrong)
        raise UsageError(f"{shown}: not supported for {kind}", hint=cure)


def _claims(given: argparse.Namespace) -> Iterator[Claim]:
    for text in given.claim:
        loop, _, claim = text.partition("=")
        depth = re.fullmatch(r"pipeline\((\d+)\)", claim)
        if claim == "parallel":
            yield Parallel(loop)
        elif depth:
            yield Pipeline(loop, int(depth[1]))
        else:
            raise UsageError(
                f"--claim {text!r} claims nothing", expected="LOOP=parallel or LOOP=pipeline(DEPTH)"
            )
    for source, sink in given.join:
        yield Join(source, sink)


def _two_names(text: str) -> tuple[str, str]:
    """A and B of A,B."""
    names = [name.strip() for name in text.split(",")]
    if len(names) != 2 or not all(names):
        raise argparse.ArgumentTypeError(f"{text!r} is not two names: A,B")
    return names[0], names[1]
