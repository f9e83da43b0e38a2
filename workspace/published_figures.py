"""Figures that take long: read from the page that the command of each has written.

A row has the pattern of its page: the groups `value` and `day`, or a column of a table of ratios.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from members import ROOT

_BETA2 = "packages/interpreter_beta2/README.md"


@dataclass(frozen=True, slots=True)
class Published:
    """A figure of a page: its pattern with the group `value`; its day, or the pattern of it."""

    name: str
    page: str
    value: str
    day: str
    command: str

    def found(self) -> tuple[str, str]:
        """The value and its day. Raises ValueError where the page has none."""
        text = (ROOT / self.page).read_text(encoding="utf-8")
        return _first(self.value, text, self.name), _first(self.day, text, self.name)


@dataclass(frozen=True, slots=True)
class Ratios:
    """The geometric mean of a table's column, divided by another one if one is named."""

    name: str
    page: str
    column: str
    over: str | None
    day: str
    command: str

    def found(self) -> tuple[str, str]:
        """The value and its day. Raises ValueError where the page has no such columns."""
        text = (ROOT / self.page).read_text(encoding="utf-8")
        table = next((t for t in _tables(text) if self.column in t[0]), None)
        if table is None:
            raise ValueError(f"{self.page} has no column {self.column}: {self.name}")
        logs = [math.log(ratio) for ratio in self._ratios(*table)]
        mean = math.exp(sum(logs) / len(logs))
        return f"{mean:.2f} ({len(logs)} kernels)", _first(self.day, text, self.name)

    def _ratios(self, head: list[str], *rows: list[str]) -> Iterator[float]:
        for row in rows:
            cells = dict(reversed([*zip(head, row, strict=False)]))
            try:
                below = float(cells[self.over].replace(",", "")) if self.over else 1.0
                yield float(cells[self.column].replace(",", "")) / below
            except ValueError:  # no number: not measured
                continue


def _tables(text: str) -> Iterator[list[list[str]]]:
    """The cells of every table, its rule left out; of columns with one name the first counts."""
    for lines in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines.splitlines()]
        yield [rows[0], *rows[2:]]


def _first(pattern: str, text: str, name: str) -> str:
    """The group of the first match; a pattern without one is the value itself."""
    if "(" not in pattern:
        return pattern
    if (found := re.search(pattern, text)) is None:
        raise ValueError(f"no page has the figure {name}: {pattern}")
    return " of ".join(found.groups())


_DAY = r"(\d{4}-\d\d-\d\d)"
_MODEL = ("docs/model.md", r"Written on " + _DAY, "python -m benchmarks.model fit")


def _model(name: str, row: str) -> Published:
    page, day, command = _MODEL
    value = rf"\| {row} \| ([\d.]+ %) \|"
    return Published(f"error of the latency model, median, {name}", page, value, day, command)


FIGURES = (
    Published(
        "tests of the NKI Library that pass", "docs/corpus.md", r"`: (\d+ of \d+) tests",
        r"\| topk .*" + _DAY, "python -m tests.corpora.nki_library --write docs/corpus.md",
    ),
    Published(
        "kernels of the Neuron SDK that do what they must", "docs/corpus.md",
        r"(\d+) of the (\d+) kernels that Python", "2026-11-28",
        "python -m tests.corpora.sdk_examples --write docs/corpus.md",
    ),
    Published(
        "kernels in 122 styles migrated to 0.7 and verified", "docs/corpus.md",
        r"\| 0\.7 \| of a run \| (\d+)", _DAY + r" \| 0\.7 \| of a run",
        "python -m tests.corpora.styles",
    ),
    _model("70 rows", "all 70, costs.json: what `estimate` uses"),
    _model("publications left out", "leave one publication out"),
    Ratios(
        "time of kernels under nki-beta2 over NumPy's", _BETA2, "ratio", None, "2026-11-22",
        "python benchmarks/kernels.py",
    ),
    Ratios(
        "time of kernels under triton-viz over NumPy's", _BETA2, "triton-viz", None, "2026-11-22",
        "TRITON_VIZ_CHECKOUT=DIR python benchmarks/kernels.py",
    ),
    Ratios(
        "instructions of generated kernels over nkipy's", "docs/generator.md", "instructions",
        "public", "2026-11-28", "NKIPY_CHECKOUT=DIR python benchmarks/generator.py",
    ),
    Published(
        "generated kernels, times as fast after a search", "docs/search.md",
        r"Geometric mean ([\d.]+) times as fast", "2026-11-28", "python benchmarks/gym.py",
    ),
)  # fmt: skip
