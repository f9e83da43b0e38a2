"""Predictions as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from statistics import median
from time import process_time

from benchmarks.model.points import NANOSECONDS, Point
from benchmarks.model.predict import (
    DIFFERENT,
    Model,
    Prediction,
    disorders,
    ladder_pairs,
    summary,
)
from benchmarks.model.readings import LARGE

from neuroncore.timeline import estimate

PLAYED = 30_000
"""Programs of more micro-ops are not played one by one when the timeline is timed."""

HEAD = f"{'id':18} {'device':6} {'predicted':>12} {'measured':>12} {'error':>8}"


def point_line(prediction: Prediction) -> str:
    """id, device, both numbers in the unit of the source, error."""
    point = prediction.point
    predicted = prediction.predicted / NANOSECONDS[point.unit]
    unit = "" if point.unit == "1" else f" {point.unit}"
    both = f"{_short(predicted) + unit:>12} {_short(point.value) + unit:>12}"
    error = "1 by definition" if point.reference else f"{100 * prediction.error:+6.1f} %"
    read_off = f"  (± {100 * point.uncertainty / point.value:.1f} %)" if point.uncertainty else ""
    return f"{point.id:18} {point.device:6} {both} {error}{read_off}"


def _short(value: float) -> str:
    return f"{value:.4g}" if value < 10_000 else f"{value:.0f}"


def summary_text(predictions: Iterable[Prediction]) -> str:
    """median 3.1 % p90 12.0 % (41 points)"""
    middle, ninth, count = summary(predictions)
    return f"median {100 * middle:.1f} % p90 {100 * ninth:.1f} % ({count} points)"


def order_lines(predictions: Sequence[Prediction]) -> Iterator[str]:
    """The ladders: how many pairs there are, and those in the wrong order."""
    wrong, pairs = list(disorders(predictions)), len(list(ladder_pairs(predictions)))
    yield f"order: {pairs - len(wrong)} of {pairs} pairs that differ by {DIFFERENT:.0%} are right"
    for a, b in wrong:
        measured = "faster" if a.point.measured < b.point.measured else "slower"
        yield f"  {a.point.id} was {measured} than {b.point.id}"


def bottleneck_lines(model: Model, points: Sequence[Point]) -> Iterator[str]:
    """Where the source names the busiest engine: how often the model agrees, and where not."""
    stated = [(p, model.bottleneck(p)) for p in points if p.bottleneck]
    wrong = [(p, lane) for p, lane in stated if lane not in p.bottleneck]
    yield f"bottleneck: {len(stated) - len(wrong)} of {len(stated)} are right"
    for point, lane in wrong:
        yield f"  {point.id}: {lane}, was {' or '.join(point.bottleneck)}"


def figure_lines(model: Model, points: Sequence[Point]) -> Iterator[str]:
    """Percentages that the profiles print: predicted, published."""
    for point in points:
        if point.figures:
            said = model.figures(point).items()
            pairs = [f"{name} {value:.1f} ({point.figures[name]:g})" for name, value in said]
            yield f"  {point.id}: {', '.join(pairs)}"


def family_lines(model: Model, predictions: Sequence[Prediction]) -> Iterator[str]:
    """By family: errors, kernels inside the 80 % interval, pairs in order, bottlenecks right."""
    head = "points", "median", "90 %", "in 80 %", "order", "bottleneck"
    yield f"{'family':24}" + "".join(f"{name:>11}" for name in head)
    for family in dict.fromkeys(p.point.family for p in predictions):
        mine = [p for p in predictions if p.point.family == family]
        middle, ninth, count = summary(mine)
        wrong = {(a.point.id, b.point.id) for a, b in disorders(mine)}
        pairs = [(a.point.id, b.point.id) not in wrong for a, b in ladder_pairs(mine)]
        named = [p for p in mine if p.point.bottleneck]
        cells = [
            str(count), f"{middle:.1%}", f"{ninth:.1%}",
            _of([low <= p.point.measured <= high for p, low, high in intervals(model, mine)]),
            _of(pairs), _of([model.bottleneck(p.point) in p.point.bottleneck for p in named]),
        ]  # fmt: skip
        yield f"{family:24}" + "".join(f"{cell:>11}" for cell in cells)


def _of(right: Sequence[bool]) -> str:
    return f"{sum(right)} of {len(right)}" if right else ""


def intervals(
    model: Model, predictions: Iterable[Prediction]
) -> Iterator[tuple[Prediction, float, float]]:
    """The times of whole kernels, with the ends of their 80 % intervals."""
    for made in predictions:
        if made.point.read in LARGE and made.point.unit in ("ns", "us", "ms"):
            found = model.timeline(made.point).uncertainty
            yield made, found.low_ns, found.high_ns


def interval_lines(model: Model, predictions: Sequence[Prediction]) -> Iterator[str]:
    """How many times of whole kernels are inside the 80 % interval, and how wide it is."""
    found = list(intervals(model, predictions))
    if found:
        inside = [low <= p.point.measured <= high for p, low, high in found]
        width = median(high / p.predicted - 1 for p, _, high in found)
        yield (f"80 % interval: {_of(inside)} kernels inside, half-width {width:.0%} in the median")


def speed_lines(model: Model, points: Sequence[Point]) -> Iterator[str]:
    """Micro-ops a second of CPU time: as estimated, and with every one played where few enough."""
    yield f"{'program':18} {'micro-ops':>9} {'as estimated':>27} {'all played':>14}"
    total_ops, total_seconds, estimates, intervals = 0, 0.0, 0.0, []
    first = {p.key: p for p in reversed(points)}
    for point in reversed(first.values()):
        mode = model.mode
        num_ops, seconds, interval = _timed(point, mode, skip_periods=True)
        estimates += seconds
        intervals.append((interval / seconds, interval, point.id))
        line = f"{point.id:18} {num_ops:9} {seconds:9.3f} s {num_ops / seconds:12,.0f} /s"
        if num_ops <= PLAYED:
            _, played, _ = _timed(point, mode, skip_periods=False)
            total_ops, total_seconds = total_ops + num_ops, total_seconds + played
            line += f" {num_ops / played:10,.0f} /s"
        yield line
    if total_ops:
        rate = f"{total_ops / total_seconds:,.0f} /s"
        yield f"all played, programs of up to {PLAYED:,} micro-ops: {rate}"
    if intervals:
        share, _, name = max(intervals)
        together = 1 + sum(seconds for _, seconds, _ in intervals) / estimates
        yield f"with interval / without: {together:.2f} together, at most {1 + share:.2f} ({name})"


def _timed(point: Point, mode: str, *, skip_periods: bool) -> tuple[int, float, float]:
    """Micro-ops of one estimate, its CPU seconds and the seconds of its interval."""
    program = point.build()
    start = process_time()
    made = estimate(
        program, mode=mode, skip_periods=skip_periods, verified=True, without=point.flags
    )
    seconds = process_time() - start
    assert made.uncertainty.low_ns > 0
    return made.num_ops, seconds, process_time() - start - seconds


BEGIN, END = "<!-- accuracy: begin -->", "<!-- accuracy: end -->"


def markdown(predictions: Sequence[Prediction], lines: Sequence[str]) -> str:
    """The table as a page: points, then what the lines say."""
    rows = [point_row(made) for made in predictions]
    head = ["| point | device | predicted | measured | error | source |", "|" + "---|" * 6]
    said = f"Written on {date.today()}."
    return "\n".join([said, "", *head, *rows, "", "```text", *lines, "```", ""])


def point_row(made: Prediction) -> str:
    """A prediction as a row of the page."""
    point, predicted = made.point, made.predicted / NANOSECONDS[made.point.unit]
    unit = "" if point.unit == "1" else f" {point.unit}"
    error = "reference" if point.reference else f"{100 * made.error:+.1f} %"
    return (
        f"| {point.id} | {point.device} | {_short(predicted)}{unit} | "
        f"{_short(point.value)}{unit} | {error} | {point.cite} |"
    )


def with_table(document: str, table: str) -> str:
    """The document with this table between its markers; without them the table alone."""
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table}{END}{after}" if begin and end else table
