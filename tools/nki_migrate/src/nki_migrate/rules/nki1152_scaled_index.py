"""NKI1152: a scaled index tensor is a strided slice."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
ip = nl.arange(128)[:, None]
jf = nl.arange(256)[None, :]
odd = nl.load(x[ip, 2 * jf + 1])
"""
_GOOD = """
odd = nl.ndarray((128, 256), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=odd, src=x[0:128, 1:512:2])
"""

RULE = Rule(
    id="NKI1152",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="a scaled index tensor is a strided slice",
    page="""\
Old: `t[ip, 2 * jf + 1]`

New: `t[0:128, 1:1024:2]`

The stop is `start + step * (n - 1) + 1`. On chip the partition dimension has no step.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
