"""`python -m neuroncore [NAME ...]`: the reference of all instructions, or of some."""

from __future__ import annotations

from collections.abc import Sequence

from neuroncore.commands.parser import make_parser
from neuroncore.commands.streams import command_line
from neuroncore.commands.suggestions import did_you_mean
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.isa.page import describe, reference_page

_EXAMPLES = """\
examples:
  python -m neuroncore                    all instructions
  python -m neuroncore nc_matmul memset   two of them
"""


@command_line("neuroncore")
def main(argv: Sequence[str] | None = None) -> int:
    """Print the page, or the description of each named instruction; the exit code."""
    parser = make_parser("neuroncore", "Print what instructions compute and reject.", _EXAMPLES)
    parser.add_argument("names", nargs="*", metavar="NAME", help="an instruction (default: all)")
    names = parser.parse_args(argv).names
    for name in names:
        if name not in INSTRUCTIONS:
            parser.error(f"no instruction {name!r}{did_you_mean(name, INSTRUCTIONS)}")
    if not names:
        print(reference_page(INSTRUCTIONS.values()), end="")
    for name in names:
        print(f"{name}\n\n{describe(INSTRUCTIONS[name])}")
    return 0
