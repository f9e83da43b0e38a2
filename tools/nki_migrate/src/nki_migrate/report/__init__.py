"""Reports: the same results as text for people, one line per finding, or a document for machines.

The format never changes the exit code.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from nki_migrate.report.github import render_github
from nki_migrate.report.json import render_json, render_jsonl
from nki_migrate.report.junit import render_junit
from nki_migrate.report.report import Mode, Report
from nki_migrate.report.sarif import render_sarif
from nki_migrate.report.summary import Summary, summarize
from nki_migrate.report.text import render_concise, render_text

FORMATS: Mapping[str, Callable[[Report], str]] = MappingProxyType(
    {
        "text": render_text,
        "concise": render_concise,
        "json": render_json,
        "jsonl": render_jsonl,
        "sarif": render_sarif,
        "github": render_github,
        "junit": render_junit,
    }
)

__all__ = ["FORMATS", "Mode", "Report", "Summary", "render_text", "summarize"]
