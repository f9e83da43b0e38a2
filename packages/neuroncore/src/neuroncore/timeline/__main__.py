"""`python -m neuroncore.timeline [FILE]`: the tables of constants, printed or put into FILE."""

from __future__ import annotations

import sys
from pathlib import Path

from neuroncore.errors import LaunchError
from neuroncore.timeline.page import tables, with_tables


def main(arguments: list[str]) -> int:
    """Print the tables, or rewrite them between the markers of the one argument."""
    if len(arguments) > 1 or any(a.startswith("-") for a in arguments):
        print(__doc__, file=sys.stderr)
        return 0 if arguments in (["-h"], ["--help"]) else 2
    if not arguments:
        print(tables())
        return 0
    page = Path(arguments[0])
    try:
        page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
    except (OSError, LaunchError) as wrong:
        print(f"{page}: {wrong}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
