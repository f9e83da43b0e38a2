"""NKI1157: subscripts with `...` or fewer indices than dimensions."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
first = nl.load(x[0])
"""
_GOOD = """
# TODO(nki-migrate NKI1157): the shape of `x[0]` is not known: unpack or assert the shape, or use --assume
first = nl.load(x[0])
"""  # noqa: E501

RULE = Rule(
    id="NKI1157",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.MANUAL,
    title="subscripts with `...` or fewer indices than dimensions",
    page="""\
Old: `t[i, ...]`

New: the dimensions written out

Needs the tensor's rank.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
