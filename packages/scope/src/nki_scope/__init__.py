"""One offline HTML page about a run of a kernel."""

from nki_scope.reporter import Reporter, page

__all__ = ["Reporter", "page"]
