"""NKI1156: one index axis in two dimensions, or divided."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
ip = nl.arange(128)[:, None]
jf = nl.arange(256)[None, :]
twice = nl.load(x[ip, jf // 2])
"""
_GOOD = """
ip = nl.arange(128)[:, None]
jf = nl.arange(256)[None, :]
# TODO(nki-migrate NKI1156): `jf // 2` divides an index tensor
twice = nl.load(x[ip, jf // 2])
"""

RULE = Rule(
    id="NKI1156",
    step=("0.1", "0.2"),
    klass="c",
    safety=Safety.MANUAL,
    title="one index axis in two dimensions, or divided",
    page="""\
Old: `t[ip, ip]`, `t[ip, jf // 2]`

New: `.ap` in HBM, else by hand

Diagonals and repeated elements are no slices.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
