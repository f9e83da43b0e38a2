"""NKI1224: augmented assignment of tiles is in place."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.load(x[0:128, 0:512])
total = nl.zeros((128, 512), dtype=nl.float32, buffer=nl.sbuf)
total += tile
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:128, 0:512])
total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
nisa.memset(dst=total, value=0.0)
nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)
"""

RULE = Rule(
    id="NKI1224",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="augmented assignment of tiles is in place",
    page="""\
Old: `t += x`

New: `nisa.tensor_tensor(dst=t, data1=t, data2=x, op=nl.add)`

See NKI1182 for matmuls.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
