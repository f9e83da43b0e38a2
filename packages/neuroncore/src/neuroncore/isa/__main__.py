"""`python -m neuroncore.isa`: the reference page of the instructions."""

from __future__ import annotations

from neuroncore.instructions import INSTRUCTIONS
from neuroncore.isa.page import reference_page

if __name__ == "__main__":
    print(reference_page(INSTRUCTIONS.values()), end="")
