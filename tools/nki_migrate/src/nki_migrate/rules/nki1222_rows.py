"""NKI1222: arithmetic of a tile and a row."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.load(x[0:128, 0:512])
row = nl.load(x[128:129, 0:512])
scaled = nl.multiply(tile, row)
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:128, 0:512])
row_bcast = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(
    dst=row_bcast,
    src=x.ap(pattern=[[0, 128], [1, 512]], offset=128 * x.shape[1]),
)
scaled = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.tensor_tensor(dst=scaled, data1=tile, data2=row_bcast, op=nl.multiply)
"""

RULE = Rule(
    id="NKI1222",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="arithmetic of a tile and a (1, F) row",
    page="""\
Old: `nl.multiply(tile, row)`, the row broadcast over the partitions

New: the row in every partition first (NKI1164), then `nisa.tensor_tensor`

**Trap.** No view repeats a partition, and a (P, 1) column in its place is another operation.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
