"""Predictions as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
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

from neuroncore.timeline import estimate

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


def speed_lines(model: Model, points: Sequence[Point]) -> Iterator[str]:
    """Micro-ops a second of CPU time: every one played, and with periods carried forward."""
    yield f"{'program':18} {'micro-ops':>9} {'all played':>16} {'with periods':>12}"
    total_ops, total_seconds = 0, 0.0
    for point in {p.key: p for p in reversed(points)}.values():
        program, mode = point.build(), model.mode or point.mode
        seconds = []
        for skip in (False, True):
            start = process_time()
            made = estimate(program, mode=mode, skip_periods=skip, verified=True)
            seconds.append(process_time() - start)
        total_ops, total_seconds = total_ops + made.num_ops, total_seconds + seconds[0]
        yield (
            f"{point.id:18} {made.num_ops:9} {made.num_ops / seconds[0]:12,.0f} /s "
            f"{seconds[1]:10.3f} s"
        )
    yield f"{'all':18} {total_ops:9} {total_ops / total_seconds:12,.0f} /s"


def markdown(predictions: Sequence[Prediction], lines: Sequence[str]) -> str:
    """The table as a page: points, then what the lines say."""
    rows = []
    for made in predictions:
        point, predicted = made.point, made.predicted / NANOSECONDS[made.point.unit]
        unit = "" if point.unit == "1" else f" {point.unit}"
        error = "reference" if point.reference else f"{100 * made.error:+.1f} %"
        rows.append(
            f"| {point.id} | {point.device} | {_short(predicted)}{unit} | "
            f"{_short(point.value)}{unit} | {error} | {point.cite} |"
        )
    head = ["| point | device | predicted | measured | error | source |", "|" + "---|" * 6]
    said = f"Written on {date.today()} by `python -m benchmarks.model --write`."
    return "\n".join([said, "", *head, *rows, "", "```text", *lines, "```", ""])
