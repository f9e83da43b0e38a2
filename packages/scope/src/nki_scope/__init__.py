"""One offline HTML page about a run of a kernel."""

from nki_scope.notebook import load_ipython_extension
from nki_scope.reporter import Reporter, page

__all__ = ["Reporter", "load_ipython_extension", "page"]
