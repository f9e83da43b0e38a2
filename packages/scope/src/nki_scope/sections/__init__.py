"""Sections of a page, from the records of other packages, as JSON and columns."""

from nki_scope.sections.advice import advice_section, advice_text
from nki_scope.sections.budget import MOST_PLAYED, Budget
from nki_scope.sections.causes import causes_of, lines_of
from nki_scope.sections.comparison import METRICS, compare_pages
from nki_scope.sections.kernel import instances_of, kernel_section
from nki_scope.sections.memory import memory_section
from nki_scope.sections.micro_op_tables import rules
from nki_scope.sections.migration import migration_section
from nki_scope.sections.own_constants import constants_of
from nki_scope.sections.replay import MOST_CALLS, ReplaySections
from nki_scope.sections.tensors import MOST_RESULTS, Snapshots
from nki_scope.sections.what_if import what_if_section

__all__ = [
    "METRICS",
    "MOST_CALLS",
    "MOST_PLAYED",
    "MOST_RESULTS",
    "Budget",
    "ReplaySections",
    "Snapshots",
    "advice_section",
    "advice_text",
    "causes_of",
    "compare_pages",
    "constants_of",
    "instances_of",
    "kernel_section",
    "lines_of",
    "memory_section",
    "migration_section",
    "rules",
    "what_if_section",
]
