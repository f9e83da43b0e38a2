"""Reports: the same results as text for people, one line per finding, or JSON for machines."""

from nki_migrate.report.json import render_json
from nki_migrate.report.summary import Summary, summarize
from nki_migrate.report.text import render_concise, render_text

__all__ = ["Summary", "render_concise", "render_json", "render_text", "summarize"]
