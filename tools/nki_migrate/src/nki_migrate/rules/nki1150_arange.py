"""NKI1150: index tensors are slices."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
ip = nl.arange(128)[:, None]
jf = nl.arange(256)[None, :]
tile = nl.load(x[ip, jf])
"""
_GOOD = """
tile = nl.ndarray((128, 256), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:128, 0:256])
"""

RULE = Rule(
    id="NKI1150",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="index tensors are slices",
    page="""\
Old: `ip = nl.arange(128)[:, None]`, `jf = nl.arange(512)[None, :]`, `t[ip, jf]`

New: `t[0:128, 0:512]`, or `t` where that is all of it

An axis of the index tensors is a slice of the dimension it indexes. The `nl.arange` line goes
with its last use.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
