"""The file of a page: columns of numbers, source files, HTML."""

from nki_scope.document.columns import Columns
from nki_scope.document.html import compared, html_page
from nki_scope.document.sources import Sources

__all__ = ["Columns", "Sources", "compared", "html_page"]
