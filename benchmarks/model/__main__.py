"""Prints every published point with the timeline's prediction, and last how far off they are.

python -m benchmarks.model
python -m benchmarks.model --section 2 4 --mode as_written
python -m benchmarks.model --write docs/model.md
python -m benchmarks.model fit
python -m benchmarks.model coverage python -m pytest tests/examples
python -m benchmarks.model library ~/nki-library
python -m benchmarks.model --speed
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from benchmarks.model.coverage import coverage_lines
from benchmarks.model.fit import fit_lines
from benchmarks.model.from_kernel import kernel_lines
from benchmarks.model.latency import latency_lines
from benchmarks.model.library import library_lines
from benchmarks.model.points import Point, all_points, unmodelled
from benchmarks.model.predict import Model, Prediction
from benchmarks.model.table import (
    HEAD,
    bottleneck_lines,
    family_lines,
    figure_lines,
    interval_lines,
    markdown,
    order_lines,
    point_line,
    speed_lines,
    summary_text,
    with_table,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the comparison that the arguments ask for."""
    asked = parser().parse_args(argv)
    points = [p for p in all_points() if not asked.section or p.section in asked.section]
    model = Model(mode=asked.mode)
    if (lines := _other_lines(asked, points, model)) is not None:
        for line in lines:
            print(line, flush=True)
        return 0
    predictions = []
    print(HEAD)
    for point in points:
        predictions.append(model.predict(point))
        print(point_line(predictions[-1]), flush=True)
    lines = [*closing_lines(model, predictions)]
    print(*lines, sep="\n")
    if asked.write is not None:
        old = asked.write.read_text(encoding="utf-8") if asked.write.exists() else ""
        asked.write.write_text(with_table(old, markdown(predictions, lines)), encoding="utf-8")
    return 0


def _other_lines(
    asked: argparse.Namespace, points: Sequence[Point], model: Model
) -> Iterator[str] | None:
    """What is printed instead of the comparison, if something is."""
    if asked.action == "fit":
        return fit_lines(points)
    if asked.action == "coverage":
        return coverage_lines(asked.command)
    if asked.action == "library":
        return library_lines(Path(*asked.command).expanduser())
    if asked.speed:
        return chain(speed_lines(model, points), latency_lines(), kernel_lines())
    return None


def explicit(points: Sequence[Point]) -> list[Point]:
    """Those whose instructions are known one by one."""
    return [p for p in points if p.is_explicit]


def closing_lines(model: Model, predictions: Sequence[Prediction]) -> Iterator[str]:
    """Families, ladders, bottlenecks, percentages; last the explicit points on one line: all of
    them, and the points that gave no constant.
    """
    points: list[Point] = [p.point for p in predictions]
    yield from family_lines(model, predictions)
    yield from order_lines(predictions)
    yield from bottleneck_lines(model, points)
    yield from interval_lines(model, predictions)
    yield f"without a program, with the reason: {len(unmodelled())} (unmodelled.toml)"
    yield "profiles, in percent of the time, predicted (published):"
    yield from figure_lines(model, points)
    known = [p for p in predictions if p.point.is_explicit]
    closed = [p for p in predictions if not p.point.is_explicit]
    if closed:
        yield f"through the closed compiler (sections 3, 6, 7): {summary_text(closed)}"
    without = summary_text(independent(known))
    yield f"{summary_text(known)}; of points that gave no constant {without}"


def independent(predictions: Sequence[Prediction]) -> list[Prediction]:
    """Those off which no constant was read."""
    return [p for p in predictions if p.point.is_independent]


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        "python -m benchmarks.model", description="The timeline against published times."
    )
    made.add_argument("action", nargs="?", choices=("compare", "fit", "coverage", "library"),
                      default="compare",
                      help="fit: the free constants, and errors of left-out points; coverage: "
                      "estimates of every kernel that a command launches; library: kernels of a "
                      "checkout of nki-library, to which nothing was fitted")  # fmt: skip
    made.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND ...",
                      help="of coverage; of library, the checkout")  # fmt: skip
    made.add_argument("--section", type=int, nargs="+", choices=(1, 2, 3, 4, 5, 6, 7, 10))
    made.add_argument("--mode", choices=("as_written", "device"), default="device",
                      help="of times of whole programs (default: device)")  # fmt: skip
    made.add_argument("--speed", action="store_true", help="time the timeline itself")
    made.add_argument("--write", type=Path, metavar="FILE",
                      help="the dated table as a page, or between a page's markers")  # fmt: skip
    return made


if __name__ == "__main__":
    raise SystemExit(main())
