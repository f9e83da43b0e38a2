"""Exact integer arithmetic: affine functions of variables, digits, sums of sets.

`sumsets` needs NumPy and is imported by its name: what is here imports the standard library alone.
"""

from neuroncore.integers.affine import Affine
from neuroncore.integers.digits import Digit, digit
from neuroncore.integers.residues import reaches

__all__ = ["Affine", "Digit", "digit", "reaches"]
