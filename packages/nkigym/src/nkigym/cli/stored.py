"""`nkigym show`, `best`, `replay` and `export`: the contents of a store."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict
from math import expm1, log
from pathlib import Path
from statistics import median
from typing import Any

from neuroncore.commands.files import naming_output, write_text
from neuroncore.commands.parser import add_output_format, at_least
from neuroncore.commands.reporting import add_report, write_report
from neuroncore.errors import LaunchError, OptionError
from neuroncore.program import Program, emit
from neuroncore.timeline import (
    Constants,
    constants,
    constants_text,
    estimate,
    fit_constants,
    read_constants,
)
from nkigym.cli.runners import BACKGROUND, add_device
from nkigym.cli.writing import MARK, check_place, write_kernel
from nkigym.runners import Case, Measurement, Runner, Timeline, case_of
from nkigym.runners.recording import Recording
from nkigym.store import Problem, Store, Stored
from nkigym.tuning import Check
from nkigym.tuning.schedule_steps import schedule_section
from nkigym.tuning.task import TuningTask, stored_task


def add_show(parser: argparse.ArgumentParser) -> None:
    """Which store."""
    parser.add_argument("store", type=Path, metavar="STORE", help="the file of --store")
    add_report(parser)
    parser.add_argument("--output-format", choices=("text", "json"), default="text")


def show(given: argparse.Namespace) -> int:
    """Every kernel, its fastest schedule, the searches that were made."""
    with Store(given.store, create=False) as store:
        shown = [_shown(store, problem) for problem in store.problems()]
        write_report("nkigym", given, _results, store)
    if given.output_format == "json":
        print(json.dumps(shown))
        return 0
    for each in shown:
        print(
            f"{each['key'][:19]} {each['name']} on {each['target']}, NKI {each['nki']}: "
            f"{each['programs']:,} programs, best {_us(each['best_ns'])}"
        )
        for run in each["runs"]:
            print(f"    {_run(run)}")
    return 0


def _results(store: Store) -> dict[str, Any]:
    """The contents of --report: every kernel before its searches, and the fastest of them."""
    timelines, schedules = [], []
    for problem in store.problems():
        runs = [run for run in store.runs(problem.key) if run.get("curve")]
        curve = min(runs, key=lambda run: run["best_ns"])["curve"] if runs else ()
        for result in store.best(problem.key):
            task = stored_task(result.program, problem.target, str(store.path))
            winner = task.kernel(task.replayed(result.schedule))
            timelines += [estimate(p, mode="as_written") for p in (task.root, winner)]
            schedules.append(schedule_section(task, result.schedule, curve))
    return {"timelines": timelines, "schedules": schedules}


def _run(run: Mapping[str, Any]) -> str:
    """A search, or a measurement of its results."""
    if "measurements" in run:
        best = min((m["p50_ns"] for m in run["measurements"] if m["p50_ns"]), default=None)
        return f"{run['runner']}: {len(run['measurements'])} measured, best {_us(best)}"
    return (
        f"{run['strategy']}, seed {run['seed']}: {run['candidates']:,} candidates in "
        f"{run['seconds']:.1f} s, {_us(run['root_ns'])} to {_us(run['best_ns'])}"
    )


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
        found = _found(store, _chosen(store, given.wanted), given.number)
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


def add_measure(parser: argparse.ArgumentParser) -> None:
    """Which store, which kernel, how many schedules, on what."""
    _add_choice(parser)
    add = parser.add_argument
    add("--number", type=at_least(1), default=4, metavar="N", help="so many (default: 4)")
    add("--runner", choices=tuple(_RUNNERS), default="timeline",
        help="the model (default), values here, or the vendor's compiler and a device")  # fmt: skip
    add("--jobs", type=at_least(1), default=1, metavar="N", help="compilations at a time")
    add_device(parser)
    add("--constants", metavar="FILE",
        help="timeline: of the model, as --fit and nki-run write them")  # fmt: skip
    add("--fit", type=Path, metavar="FILE",
        help="fit the model's constants to what was measured, write them there")  # fmt: skip
    add("--output-format", choices=("text", "json"), default="text")


def measure(given: argparse.Namespace) -> int:
    """The fastest schedules of a kernel by a runner, ranked anew; 1 where one is not "ok"."""
    _check_runner(given)
    if given.constants is not None:
        given.constants = read_constants(given.constants)
    with Store(given.store, create=False) as store:
        chosen = _chosen(store, given.wanted)
        found = _found(store, chosen, given.number)
    cases = [_case(f"{n}", each, chosen, given.store) for n, each in enumerate(found, 1)]
    runner = _RUNNERS[given.runner](given, chosen.target)
    with Store(given.store) as store:
        recording = Recording(store, chosen, runner.name)
        runner.measure(cases, recording.add)
    measured = recording.results
    as_json = given.output_format == "json"
    print(json.dumps(recording.rows) if as_json else _measured(runner, measured))
    if given.fit is not None:
        _fit(given.fit, chosen.target, {case.key: case.program for case in cases}, measured)
    return 0 if all(each.status == "ok" for each in measured) else 1


def _case(key: str, found: Stored, problem: Problem, store: Path) -> Case:
    """A stored schedule of the program that it begins with; kernels of one key have several."""
    task = stored_task(found.program, problem.target, str(store))
    program = task.kernel(task.replayed(found.schedule))
    return case_of(key, task.root, program, found.latency_ns)


def _check_runner(given: argparse.Namespace) -> None:
    """Whether the runner takes the other options. Raises OptionError."""
    if given.constants is not None and given.runner != "timeline":
        raise OptionError("--constants is for estimates", expected="--runner timeline")
    if given.fit is not None and given.runner == "interpreter":
        raise OptionError(
            "--fit needs times, and --runner interpreter measures none",
            expected="--runner neuron, or timeline",
        )


_RUNNERS: Mapping[str, Callable[[argparse.Namespace, str], Runner]] = {
    "timeline": lambda given, target: Timeline(given.constants),
    **BACKGROUND,
}


def _fit(
    file: Path, target: str, programs: Mapping[str, Program], measured: Sequence[Measurement]
) -> None:
    """Write constants that suit the measured latencies of programs, and how well they do."""
    times_ns = {each.key: each.p50_ns for each in measured if each.p50_ns and each.status == "ok"}
    if not times_ns:
        raise LaunchError("nothing was measured that constants can be fitted to")

    def errors(values: Constants) -> dict[Hashable, float]:
        return {
            key: log(ns / estimate(programs[key], mode="as_written", constants=values).total_ns)
            for key, ns in times_ns.items()
        }

    fitted = fit_constants(errors, constants(), target)
    before, after = (median(map(abs, errors(c).values())) for c in (constants(), fitted))
    about = f"fitted to {len(times_ns)} schedules that nkigym has measured"
    with naming_output("--fit", file):
        write_text(file, constants_text(fitted, about))
    sys.stderr.write(
        f"nkigym: estimates are off by {expm1(before):.1%} in the median, with the constants of "
        f"{file} by {expm1(after):.1%}\n"
    )


def _measured(runner: Runner, measured: Sequence[Measurement]) -> str:
    """Measured beside predicted, the fastest first; seconds of compilation that were hidden."""
    lines = [f"{'schedule':>8} {'predicted':>14} {'p50':>14} {'p99':>14}  status ({runner.name})"]
    for each in measured:
        figures = (_us(each.predicted_ns), _us(each.p50_ns), _us(each.p99_ns))
        status = f"{each.status}: {each.what}" if each.what else each.status
        lines.append(f"{each.key:>8} " + " ".join(f"{f:>14}" for f in figures) + f"  {status}")
    compiled = [each for each in measured if each.compile_s]
    if compiled:
        total = sum(each.compile_s for each in compiled)
        lines.append(f"{len(compiled)} compiled in {total:.1f} s, {runner.hidden_s:.1f} s hidden")
    return "\n".join(lines)


def add_replay(parser: argparse.ArgumentParser) -> None:
    """Which store, which kernel."""
    _add_choice(parser)
    parser.add_argument("--output-format", choices=("text", "json"), default="text")


def replay(given: argparse.Namespace) -> int:
    """The fastest schedule, replayed, checked and estimated; 1 where it does not hold."""
    result, task, state = _fastest(given)
    latency_ns = estimate(task.kernel(state), mode="as_written").total_ns
    same = latency_ns == result.latency_ns
    checks = (
        *task.verify_winner(state, result.schedule),
        Check(
            "latency", same, f"{_us(latency_ns)}" if same else f"{_us(latency_ns)}, not as stored"
        ),
    )
    if given.output_format == "json":
        document = {"latency_us": latency_ns / 1e3, "checks": [asdict(each) for each in checks]}
        print(json.dumps(document, indent=1))
    else:
        print(*checks, sep="\n")
    return 0 if same else 1


def add_export(parser: argparse.ArgumentParser) -> None:
    """Which store, which kernel, where to."""
    _add_choice(parser)
    add = parser.add_argument
    add("-o", dest="output", type=Path, metavar="FILE.py", help="(default: stdout)")
    add("--what", choices=tuple(_WHAT), default="source",
        help="the kernel's source, its program as text, or the schedule as JSON")  # fmt: skip
    add("--force", action="store_true", help="write over a file that nkigym has not written")
    add_output_format(parser, help="json: with the kernel's name, target and latency")


def export(given: argparse.Namespace) -> int:
    """The fastest program as source, as text, or its schedule, once it is proved anew."""
    if given.output is not None:
        check_place(given.output, given.force)
    result, task, state = _fastest(given)
    task.verify_winner(state, result.schedule)
    text = _WHAT[given.what](result, task.kernel(state))
    if given.output is not None:
        write_kernel(given.output, text)
    if given.output_format == "json":
        print(json.dumps(_exported(given, result, task.root.name, text)))
    elif given.output is None:
        print(text, end="")
    return 0


def _exported(given: argparse.Namespace, result: Stored, kernel: str, text: str) -> dict[str, Any]:
    output = None if given.output is None else str(given.output)
    return {
        "kernel": kernel, "latency_ns": result.latency_ns, "what": given.what, "text": text,
        "output": output,
    }  # fmt: skip


def _source(result: Stored, winner: Program) -> str:
    head = f"{MARK}: {_us(result.latency_ns)} on {winner.target}, NKI {winner.nki}\n"
    return head + "".join(f"#   {json.dumps(s)}\n" for s in result.schedule) + "\n" + emit(winner)


_WHAT: Mapping[str, Callable[[Stored, Program], str]] = {
    "source": _source,
    "program": lambda result, winner: str(winner),
    "schedule": lambda result, winner: json.dumps(list(result.schedule), indent=1) + "\n",
}


# -- the kernel of a store -------------------------------------------------------------------------


def _add_choice(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("store", type=Path, metavar="STORE", help="the file of --store")
    parser.add_argument(
        "--kernel",
        dest="wanted",
        metavar="NAME|KEY",
        help="where a store contains more than one; see nkigym show",
    )


def _chosen(store: Store, wanted: str | None) -> Problem:
    """The kernel with that name, or whose key begins so; the only one where none is named."""
    every = store.problems()
    names = ", ".join(f"{p.name} ({p.key[:19]})" for p in every) or "nothing"
    found = [p for p in every if wanted is None or p.name == wanted or p.key.startswith(wanted)]
    if len(found) != 1:
        what = "contains no such kernel" if not found else "contains more than one such kernel"
        raise OptionError(
            f"{store.path} {what}", expected="--kernel with a name or the beginning of a key",
            got=f"the store has {names}",
        )  # fmt: skip
    return found[0]


def _found(store: Store, problem: Problem, number: int = 1) -> list[Stored]:
    """The fastest results of a kernel. Raises LaunchError where there is none."""
    found = store.best(problem.key, number)
    if not found:
        raise LaunchError(f"nothing was found for {problem.name} yet")
    return found


def _fastest(given: argparse.Namespace) -> tuple[Stored, TuningTask, Any]:
    """A kernel's fastest result, what it begins with, and the state where it leads."""
    with Store(given.store, create=False) as store:
        problem = _chosen(store, given.wanted)
        found = _found(store, problem)
    task = stored_task(found[0].program, problem.target, str(given.store))
    return found[0], task, task.replayed(found[0].schedule)


def _us(nanoseconds: float | None) -> str:
    return "none" if nanoseconds is None else f"{nanoseconds / 1e3:,.2f} µs"
