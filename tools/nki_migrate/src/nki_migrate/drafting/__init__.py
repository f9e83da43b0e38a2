"""`draft-rules`: what a new release of NKI needs here, drafted from two API descriptions."""

from nki_migrate.drafting.api import Api, ApiError
from nki_migrate.drafting.changes import ApiChange, Kind, changes_between
from nki_migrate.drafting.sources import read_api
from nki_migrate.drafting.writing import drafts, summary, write_drafts

__all__ = [
    "Api",
    "ApiChange",
    "ApiError",
    "Kind",
    "changes_between",
    "drafts",
    "read_api",
    "summary",
    "write_drafts",
]
