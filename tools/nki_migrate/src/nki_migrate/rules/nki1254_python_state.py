"""NKI1254: Python state in loops means something else now."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
count = 0
for i in nl.affine_range(4):
    count += 1
"""
_GOOD = """
count = 0
for i in nl.affine_range(4):
    count += 1
"""

RULE = Rule(
    id="NKI1254",
    step=("0.1", "0.2"),
    klass="c",
    safety=Safety.MANUAL,
    title="Python state in loops means something else now",
    page="""\
Old: `n += 1` in an `nl.affine_range` loop

New: the same text

0.1 ran a loop body once, 0.2 runs it for every iteration (trap T1).
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
