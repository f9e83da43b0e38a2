"""The codes of tokenplan, for docs/tokenplan-codes.md."""

from __future__ import annotations

from textwrap import fill

from tokenplan.report.codes import PAGES, Page


def pages_text() -> str:
    """All pages as one document."""
    head = (
        "# What tokenplan's codes mean\n\n"
        "Codes stay the same from version to version. Those with E are errors (exit code 1), those "
        "with\nW are worth knowing. `tokenplan explain-code W2` prints one of them.\n"
    )
    return head + "".join(map(_section, PAGES.values()))


def _section(page: Page) -> str:
    return f"\n## {page.code}: {page.title}\n\n{_wrapped(page.means)}\n\n{_wrapped(page.do)}\n"


def _wrapped(text: str) -> str:
    return fill(text, 100, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    print(pages_text(), end="")
