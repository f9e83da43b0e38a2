"""The HTML document of a page: summary without script, compressed data, script and style."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any


def html_page(document: dict[str, Any], data: str) -> str:
    """One document that loads nothing; `data` is the packed form of the document."""
    names = list(dict.fromkeys(kernel["name"] for kernel in document["kernels"]))
    names = names or [Path(file["path"]).name for file in document["migrations"]] or ["no kernel"]
    title = escape(f"{', '.join(names)} ({document['command']})")
    return "\n".join((
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">',
        '<meta name="color-scheme" content="light dark">',
        # Nothing is loaded from anywhere; the document needs its own script and style only.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
        "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:\">",
        f"<title>{title}</title><style>{_asset('page.css')}</style></head><body>",
        f"<h1>{title}</h1>", '<div id="app"></div>',
        _SUMMARY,
        *_summary(document), "</details>",
        f"{_MARK}{data}</script>",
        f"<script>{_asset('page.js')}</script></body></html>", "",
    ))  # fmt: skip


def compared(first: str, second: str, comparison: str, text: str) -> str:
    """The page of two pages and of their comparison, packed: data beside that of the first. What
    it has without its script is the comparison as text.

    Raises ValueError for a text that is not a page.
    """
    data_of(first)
    at = first.index(_MARK)
    blocks = {"data2": data_of(second), "comparison": comparison}
    more = [
        f'<script type="text/plain" id="{name}">{data}</script>\n' for name, data in blocks.items()
    ]
    start = first.index(_SUMMARY) + len(_SUMMARY)
    return "".join((first[:start], _paragraph("Compare", text), "</details>", *more, first[at:]))


def data_of(text: str) -> str:
    """The packed contents of a page. Raises ValueError for a text that is not a page."""
    found = re.search(rf"{_MARK}([^<]*)<", text)
    if found is None:
        raise ValueError("not a page that --report wrote")
    return found[1]


_SUMMARY = '<details id="summary" open><summary>Summary as text</summary>'
_MARK = '<script type="text/plain" id="data">'


def _summary(document: dict[str, Any]) -> Iterator[str]:
    for error in document["errors"]:
        yield f'<pre class="error">{escape(error)}</pre>'
    for title, text in summary_of(document):
        yield _paragraph(title, text)


def _paragraph(title: str, text: str) -> str:
    return f"<h2>{escape(title)}</h2>" * bool(title) + f"<pre>{escape(text)}</pre>"


def summary_of(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Titles, of kernels and findings "", and texts: what a page has without its script, beside
    its errors."""
    yield from (("", kernel["summary"]) for kernel in document["kernels"])
    yield from (("Tokens", orders["text"]) for orders in document["orders"])
    yield from (("Schedule", _schedule_text(found)) for found in document["schedules"])
    yield from ((file["path"], _migration_text(file)) for file in document["migrations"])
    yield from document["texts"]
    yield from (("", finding["text"]) for finding in document["findings"])


def _schedule_text(schedule: Mapping[str, Any]) -> str:
    rows = (f"{step['ns'] / 1e3:.2f} µs after {step['step']}" for step in schedule["steps"])
    return "\n".join((f"{schedule['name']}: {schedule['rootNs'] / 1e3:.2f} µs", *rows))


def _migration_text(file: Mapping[str, Any]) -> str:
    changed = sum(row[0] == "changed" for row in file["rows"])
    rules = (f"line {line}: {rule}" for line, found in file["rules"].items() for rule in found)
    return "\n".join((f"{changed} lines differ", *rules))


def _asset(name: str) -> str:
    return (files("nki_scope") / "assets" / name).read_text("utf-8").strip()
