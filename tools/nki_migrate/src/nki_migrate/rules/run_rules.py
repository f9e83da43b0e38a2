"""Rules about a run as a whole, without a page of their own."""

from __future__ import annotations

from enum import StrEnum


class RunRule(StrEnum):
    """The ids of these rules."""

    UNUSED_COMMENT = "NKI0001"
    UNTOUCHED = "NKI0002"
    MIXED_IMPORT = "NKI0003"
    UNSTABLE = "NKI0004"
    UNCLEAR_NAMES = "NKI0005"
    UNRESOLVED = "NKI0006"
    NEWER = "NKI0007"


RUN_RULES: dict[str, str] = {
    RunRule.UNUSED_COMMENT: "a comment suppresses what nothing here needs",
    RunRule.UNTOUCHED: "a kernel is left as it is, as a comment requests",
    RunRule.MIXED_IMPORT: "kernels of both dialects need one imported name",
    RunRule.UNSTABLE: "a kernel is left as it is: its migrated form would change again",
    RunRule.UNRESOLVED: "the migrated kernel has a name or a call that does not resolve",
    RunRule.NEWER: "a kernel needs a newer version than the target, and nothing migrates back",
    RunRule.UNCLEAR_NAMES: "names are unclear, and nothing of the file was migrated",
}
"""Their titles."""
