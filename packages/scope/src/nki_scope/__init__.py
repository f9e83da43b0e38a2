"""One offline HTML page about a run of a kernel."""

TYPE_CHECKING = False  # of `typing`; under `python -m`, an import here may find a user's file
if TYPE_CHECKING:
    from nki_scope.notebook import html_of
    from nki_scope.reporter import Reporter, page

__all__ = ["Reporter", "html_of", "page"]

_MODULES = {
    "notebook": "html_of",
    "reporter": "Reporter page",
}


def __getattr__(name: str) -> object:
    from neuroncore.lazy_names import lazy_names

    return lazy_names(__name__, _MODULES)[0](name)


def __dir__() -> list[str]:
    return sorted(__all__)
