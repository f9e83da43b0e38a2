"""`python -m neuroncore.instructions [FILE]`: the reference page, printed or written to FILE."""

from __future__ import annotations

import sys
from pathlib import Path

from neuroncore.instructions import INSTRUCTIONS
from neuroncore.instructions._page import reference_page


def main(arguments: list[str]) -> int:
    """Print the page, or write it to the one argument."""
    if len(arguments) > 1 or any(a.startswith("-") for a in arguments):
        print(__doc__, file=sys.stderr)
        return 0 if arguments in (["-h"], ["--help"]) else 2
    page = reference_page(INSTRUCTIONS.values())
    if arguments:
        Path(arguments[0]).write_text(page, encoding="utf-8")
    else:
        print(page, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
