"""`python -m neuroncore.isa [NAME ...]`: the reference page of the instructions, or of some."""

from __future__ import annotations

import sys

from neuroncore.commands.suggestions import did_you_mean
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.isa.page import describe, reference_page


def main(names: list[str]) -> int:
    """Print the page, or the description of each named instruction; the exit code."""
    for name in names:
        if name not in INSTRUCTIONS:
            near = did_you_mean(name, INSTRUCTIONS)
            sys.stderr.write(f"neuroncore.isa: no instruction {name!r}{near}\n")
            return 2
    if not names:
        print(reference_page(INSTRUCTIONS.values()), end="")
    for name in names:
        print(f"{name}\n\n{describe(INSTRUCTIONS[name])}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
