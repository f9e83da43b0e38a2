"""Draft every package's changelog: fails on a fragment that is misnamed or empty."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from members import ROOT, Member, members


def empty_fragments(member: Member) -> list[Path]:
    """Fragments that say nothing."""
    fragments = (member.directory / "changelog.d").glob("*.md")
    return [path for path in sorted(fragments) if not path.read_text(encoding="utf-8").strip()]


def draft(member: Member) -> str | None:
    """None when towncrier accepts the fragments, else what it said."""
    towncrier = (sys.executable, "-m", "towncrier", "build", "--draft")
    where = ("--config", str(ROOT / "towncrier.toml"), "--dir", str(member.directory))
    what = ("--name", member.name, "--version", member.version, "--date", "unreleased")
    done = subprocess.run((*towncrier, *where, *what), capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else (done.stderr or done.stdout).strip()


def main() -> int:
    """Print one line per problem; 1 when there is one."""
    complaints = [
        f"{path.relative_to(ROOT)}: empty" for m in members() for path in empty_fragments(m)
    ]
    complaints += [f"{m.name}: {said}" for m in members() if (said := draft(m))]
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    raise SystemExit(main())
