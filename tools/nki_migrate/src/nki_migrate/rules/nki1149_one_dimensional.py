"""NKI1149: one-dimensional tensors on chip."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.ndarray((128,), dtype=nl.float32, buffer=nl.sbuf)
"""
_GOOD = """
# TODO(nki-migrate NKI1149): a one-dimensional tensor on chip: at least (P, 1) from 0.2 on
tile = nl.ndarray((128,), dtype=nl.float32, buffer=nl.sbuf)
"""

RULE = Rule(
    id="NKI1149",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.MANUAL,
    title="one-dimensional tensors on chip",
    page="""\
Old: `nl.ndarray((n,), …, buffer=nl.sbuf)`

New: `(n, 1)` or `(1, n)`

A tile has at least two dimensions; which one is meant only the author knows.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
