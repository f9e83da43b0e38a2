"""The file of a page: columns of numbers, source files, HTML."""

from nki_scope.document.columns import OTHER_VERSION, Columns, ticks, unpacked
from nki_scope.document.html import compared, data_of, html_page, summary_of
from nki_scope.document.sources import Sources

__all__ = [
    "OTHER_VERSION", "Columns", "Sources", "compared", "data_of", "html_page", "summary_of",
    "ticks", "unpacked",
]  # fmt: skip
