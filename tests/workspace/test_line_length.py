"""TypeScript has no formatter here: its lines are short enough to read side by side."""

from __future__ import annotations

from members import ROOT

LONGEST = 120


def test_lines_of_typescript_have_at_most_120_characters():
    sources = sorted(ROOT.glob("packages/*/web/src/*.ts"))

    assert sources
    long = [
        f"{path.relative_to(ROOT)}:{number} has {len(line)} characters"
        for path in sources
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if len(line) > LONGEST
    ]
    assert long == []
