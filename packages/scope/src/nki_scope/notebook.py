"""`%load_ext nki_scope`: timelines and findings as HTML in a notebook, without script."""

from __future__ import annotations

from html import escape
from typing import Any

from neuroncore.checks import Report
from neuroncore.findings import Finding
from neuroncore.timeline import Timeline
from nki_runtime.trace import picture

MOST_BARS = 2000
"""Micro-ops of a timeline up to which its picture is shown."""


def load_ipython_extension(shell: Any) -> None:
    """Show the types of HTML_OF as HTML."""
    formatter = shell.display_formatter.formatters["text/html"]
    for kind, html in HTML_OF.items():
        formatter.for_type(kind, html)


def _timeline(timeline: Timeline) -> str:
    drawn = picture([timeline]) if timeline.num_bars <= MOST_BARS else ""
    return drawn + _text(timeline)


def _text(value: object) -> str:
    return f"<pre>{escape(str(value))}</pre>"


HTML_OF = {Timeline: _timeline, Finding: _text, Report: _text}
"""Type → its HTML."""
