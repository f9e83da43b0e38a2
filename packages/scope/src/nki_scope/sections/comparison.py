"""Two runs, kernel by kernel and line by line: times, HBM bytes, micro-ops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np

Document = Mapping[str, Any]
Pair = tuple[int, int]
"""Numbers of two kernels that are compared."""
METRICS = "critical_path_ns", "busy_ns", "hbm_bytes", "micro_ops"
IDENTITIES: tuple[Callable[[Document], Any], ...] = (
    lambda kernel: (kernel["name"], kernel["target"], kernel["mode"]),
    lambda kernel: (kernel["name"], kernel["mode"]),
    lambda kernel: kernel["mode"],
)
"""What two kernels have in common to be compared, the closest pairs first."""


def compare_pages(first: Document, second: Document) -> dict[str, Any]:
    """The kernels of two pages in pairs, with the lines of each; the first of equal ones go
    together. Documents have their columns as arrays.
    """
    pairs = sorted(_pairs(first["kernels"], second["kernels"]))
    return {
        "kernels": [_compared(first, second, pair) for pair in pairs],
        "only_first": _others(first["kernels"], {a for a, _ in pairs}),
        "only_second": _others(second["kernels"], {b for _, b in pairs}),
    }


def _pairs(first: Sequence[Document], second: Sequence[Document]) -> Iterator[Pair]:
    remaining = [list(range(len(first))), list(range(len(second)))]
    for identity in IDENTITIES:
        for a in list(remaining[0]):
            same = (b for b in remaining[1] if identity(second[b]) == identity(first[a]))
            if (b := next(same, None)) is not None:
                remaining[0].remove(a)
                remaining[1].remove(b)
                yield a, b


def _others(kernels: Sequence[Document], paired: set[int]) -> list[str]:
    return [kernel["name"] for n, kernel in enumerate(kernels) if n not in paired]


def _compared(first: Document, second: Document, pair: Pair) -> dict[str, Any]:
    kernels = [document["kernels"][n] for document, n in zip((first, second), pair, strict=True)]
    sides = [_lines(*each) for each in zip((first, second), kernels, strict=True)]
    rows = [_row(key, *(side.get(key) for side in sides)) for key in {**sides[0], **sides[1]}]
    return {
        "numbers": list(pair),
        "first": _totals(kernels[0]), "second": _totals(kernels[1]),
        "lines": sorted(rows, key=_size),
    }  # fmt: skip


def _totals(kernel: Document) -> dict[str, Any]:
    return {
        "name": kernel["name"], "target": kernel["target"], "mode": kernel["mode"],
        "total_ns": kernel["totalNs"], "hbm_bytes": kernel["hbmBytes"],
        "micro_ops": kernel["numOps"],
        "busy_ns": {lane: use["busy"] for lane, use in kernel["lanes"].items()},
    }  # fmt: skip


Key = tuple[str, int]
"""The text of a line, and its number among lines of that text: a line that moved is the same."""
Line = tuple[str, list[float]]
"""Where it is, and its METRICS."""


def _lines(document: Document, kernel: Document) -> dict[Key, Line]:
    """Every line that has an instruction; one without a text goes by that instruction."""
    sums = _sums(kernel)
    places: dict[tuple[str, int], list[float]] = {}
    names: dict[tuple[str, int], str] = {}
    for call, of_call in zip(kernel["calls"], sums.T.tolist(), strict=True):
        file, line = call["at"] or (None, 0)
        place = (call["instruction"] if file is None else document["files"][file]["path"], line)
        names.setdefault(place, call["instruction"])
        known = places.get(place, [0.0] * len(METRICS))
        places[place] = [a + b for a, b in zip(known, of_call, strict=True)]
    texts = {file["path"]: file["lines"] for file in document["files"]}
    count: Counter[str] = Counter()
    found: dict[Key, Line] = {}
    for (path, line), values in sorted(places.items()):
        if not values[-1]:
            continue
        lines = texts.get(path, ())
        text = "".join(lines[max(line - 1, 0) : line]).strip() or names[path, line]
        where = f"{PurePath(path).name}:{line}" if line else path
        found[text, count[text]] = where, values
        count[text] += 1
    return found


def _sums(kernel: Document) -> np.ndarray:
    """METRICS by call."""
    bars, path, size = kernel["bars"], kernel["path"], len(kernel["calls"])
    ns = 1 / kernel["perNs"]
    call = bars["call"]

    def total(of: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        return np.bincount(of, weights, size)[:size]

    return np.array([
        total(call[path["bar"]], path["ticks"]) * ns, total(call, bars["busy"]) * ns,
        total(call, bars["bytes"]), total(call),
    ])  # fmt: skip


def _row(key: Key, first: Line | None, second: Line | None) -> dict[str, Any]:
    nothing: Line = ("", [0.0] * len(METRICS))
    values = zip((first or nothing)[1], (second or nothing)[1], strict=True)
    return {
        "first": first and first[0], "second": second and second[0], "text": key[0],
        **{name: list(both) for name, both in zip(METRICS, values, strict=True)},
    }  # fmt: skip


def _size(row: Mapping[str, Any]) -> tuple[float, ...]:
    """The largest differences come first."""
    return tuple(-abs(row[name][1] - row[name][0]) for name in METRICS)
