"""NKI1130: `nl.par_dim` is gone."""

from nki_migrate.findings import Safety
from nki_migrate.lower.creation import create
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.ndarray((nl.par_dim(128), 512), dtype=nl.float32, buffer=nl.sbuf)
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
"""

RULE = Rule(
    id="NKI1130",
    step=("0.1", "0.2"),
    klass="a",
    safety=Safety.SAFE,
    title="`nl.par_dim` is gone",
    page="""\
Old: `nl.ndarray((nl.par_dim(128), 512), …)`

New: `nl.ndarray((128, 512), …)`

The first dimension of a tensor on chip is the partition dimension, always.
""",
    calls={"nl.ndarray": create},
    examples=(Example.kernel(_BAD, _GOOD),),
)
