"""One offline HTML page about a run of a kernel."""

from neuroncore.lazy_names import TYPE_CHECKING, lazy_names

if TYPE_CHECKING:
    from nki_scope.notebook import html_of
    from nki_scope.reporter import Reporter, page

__all__ = ["Reporter", "html_of", "page"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "notebook": "html_of",
        "reporter": "Reporter page",
    },
)
