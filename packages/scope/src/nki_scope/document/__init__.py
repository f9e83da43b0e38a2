"""The file of a page: columns of numbers, source files, HTML."""

from nki_scope.document.columns import Columns, unpacked
from nki_scope.document.html import compared, data_of, html_page
from nki_scope.document.sources import Sources

__all__ = ["Columns", "Sources", "compared", "data_of", "html_page", "unpacked"]
