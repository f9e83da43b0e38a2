"""`nkigym show`, `best`, `replay` and `export`: what a store holds."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from neuroncore.commands.parser import at_least
from neuroncore.commands.reporting import add_report, write_report
from neuroncore.errors import LaunchError
from neuroncore.program import Program, emit
from neuroncore.timeline import estimate
from nkigym.cli.writing import MARK, check_place, write_kernel
from nkigym.store import Problem, Store, Stored
from nkigym.tuning import Check
from nkigym.tuning.task import TuningTask, stored_task


def add_show(parser: argparse.ArgumentParser) -> None:
    """Which store."""
    parser.add_argument("store", metavar="STORE", help="the file of --store")
    add_report(parser)
    parser.add_argument("--output-format", choices=("text", "json"), default="text")


def show(given: argparse.Namespace) -> int:
    """Every kernel, its fastest schedule, the searches that were made."""
    with Store(given.store, create=False) as store:
        held = [_shown(store, problem) for problem in store.problems()]
        write_report("nkigym", given.report, _results, store)
    if given.output_format == "json":
        print(json.dumps(held))
        return 0
    for each in held:
        print(
            f"{each['key'][:19]} {each['name']} on {each['target']}, NKI {each['nki']}: "
            f"{each['programs']:,} programs, best {_us(each['best_ns'])}"
        )
        for run in each["runs"]:
            print(
                f"    {run['strategy']}, seed {run['seed']}: {run['candidates']:,} candidates in "
                f"{run['seconds']:.1f} s, {_us(run['root_ns'])} to {_us(run['best_ns'])}"
            )
    return 0


def _results(store: Store) -> dict[str, Any]:
    """What --report shows: the fastest of every kernel."""
    fastest = [(p, result) for p in store.problems() for result in store.best(p.key)]
    steps = "\n".join(json.dumps(step) for _, each in fastest for step in each.schedule)
    timelines = [estimate(_winner(*each, str(store.path))) for each in fastest]
    return {"timelines": timelines, "text": ("Schedule", steps)}


def _shown(store: Store, problem: Problem) -> dict[str, Any]:
    latencies = store.latencies(problem.key)
    return {
        "key": problem.key, "name": problem.name, "target": problem.target, "nki": problem.nki,
        "costs": problem.costs, "programs": len(latencies),
        "best_ns": min(latencies.values(), default=None), "runs": store.runs(problem.key),
    }  # fmt: skip


def add_best(parser: argparse.ArgumentParser) -> None:
    """Which store, which kernel, how many schedules."""
    _add_choice(parser)
    parser.add_argument(
        "--number", type=at_least(1), default=1, metavar="N", help="so many (default: 1)"
    )
    parser.add_argument("--output-format", choices=("text", "json"), default="text")


def best(given: argparse.Namespace) -> int:
    """The fastest schedules of a kernel."""
    with Store(given.store, create=False) as store:
        found = store.best(_chosen(store, given.kernel).key, given.number)
    if given.output_format == "json":
        rows = [
            {"latency_ns": r.latency_ns, "bound_ns": r.bound_ns, "schedule": list(r.schedule)}
            for r in found
        ]
        print(json.dumps(rows))
        return 0
    for number, result in enumerate(found, 1):
        ratio = result.latency_ns / result.bound_ns
        print(f"{number}. {_us(result.latency_ns)}, {ratio:.2f} x roofline")
        for step in result.schedule:
            print(f"   {json.dumps(step)}")
    return 0


def add_replay(parser: argparse.ArgumentParser) -> None:
    """Which store, which kernel."""
    _add_choice(parser)


def replay(given: argparse.Namespace) -> int:
    """The fastest schedule, replayed, checked and estimated; 1 where it does not hold."""
    result, asked, state = _fastest(given)
    latency_ns = estimate(asked.kernel(state)).total_ns
    same = latency_ns == result.latency_ns
    checks = (
        *asked.verify_winner(state, result.schedule),
        Check(
            "latency", same, f"{_us(latency_ns)}" if same else f"{_us(latency_ns)}, not as stored"
        ),
    )
    for each in checks:
        print(each)
    return 0 if same else 1


def add_export(parser: argparse.ArgumentParser) -> None:
    """Which store, which kernel, where to."""
    _add_choice(parser)
    add = parser.add_argument
    add("-o", dest="output", type=Path, metavar="FILE.py", help="(default: stdout)")
    add("--what", choices=tuple(_WHAT), default="source",
        help="the kernel's source, its program as text, or the schedule as JSON")  # fmt: skip
    add("--force", action="store_true", help="write over a file that nkigym has not written")


def export(given: argparse.Namespace) -> int:
    """The fastest program as source, as text, or its schedule, once it is proved anew."""
    if given.output is not None:
        check_place(given.output, given.force)
    result, asked, state = _fastest(given)
    asked.verify_winner(state, result.schedule)
    text = _WHAT[given.what](result, asked.kernel(state))
    if given.output is None:
        print(text, end="")
    else:
        write_kernel(given.output, text)
    return 0


def _source(result: Stored, winner: Program) -> str:
    head = f"{MARK}: {_us(result.latency_ns)} on {winner.target}, NKI {winner.nki}\n"
    return head + "".join(f"#   {json.dumps(s)}\n" for s in result.schedule) + "\n" + emit(winner)


_WHAT: Mapping[str, Callable[[Stored, Program], str]] = {
    "source": _source,
    "program": lambda result, winner: str(winner),
    "schedule": lambda result, winner: json.dumps(list(result.schedule), indent=1) + "\n",
}


# -- what is meant ---------------------------------------------------------------------------------


def _add_choice(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("store", metavar="STORE", help="the file of --store")
    parser.add_argument(
        "--kernel", metavar="NAME|KEY", help="where the store holds more than one; see nkigym show"
    )


def _chosen(store: Store, wanted: str | None) -> Problem:
    """The kernel with that name, or whose key begins so; the only one where none is named."""
    every = store.problems()
    held = ", ".join(f"{p.name} ({p.key[:19]})" for p in every) or "nothing"
    found = [p for p in every if wanted is None or p.name == wanted or p.key.startswith(wanted)]
    if len(found) != 1:
        what = "holds no such kernel" if not found else "holds more than one such kernel"
        raise LaunchError(
            f"{store.path} {what}", expected="--kernel with a name or the beginning of a key",
            got=f"the store has {held}",
        )  # fmt: skip
    return found[0]


def _fastest(given: argparse.Namespace) -> tuple[Stored, TuningTask, Any]:
    """A kernel's fastest result, what it begins with, and the state where it leads."""
    with Store(given.store, create=False) as store:
        problem = _chosen(store, given.kernel)
        found = store.best(problem.key)
    if not found:
        raise LaunchError(f"nothing was found for {problem.name} yet")
    asked = stored_task(found[0].program, problem.target, str(given.store))
    return found[0], asked, asked.replayed(found[0].schedule)


def _winner(problem: Problem, result: Stored, path: str) -> Program:
    task = stored_task(result.program, problem.target, path)
    return task.kernel(task.replayed(result.schedule))


def _us(nanoseconds: float | None) -> str:
    return "none" if nanoseconds is None else f"{nanoseconds / 1e3:,.2f} µs"
