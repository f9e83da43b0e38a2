"""NKI1271: gather and scatter."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
n, m = x.shape
rows = nl.load(numbers[0:128, 0:1])
jf = nl.arange(64)[None, :]
ip = nl.arange(128)[:, None]
tile = nl.load(x[rows[ip, 0], jf])
"""
_GOOD = """
n, m = x.shape
rows = nl.ndarray((128, 1), dtype=numbers.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=rows, src=numbers[0:128, 0:1])
tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(
    dst=tile,
    src=x.ap(pattern=[[m, 128], [1, 64]], offset=0, vector_offset=rows[:, 0:1], indirect_dim=0),
)
"""

RULE = Rule(
    id="NKI1271",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="gather and scatter",
    page="""\
Old: `h[idx_tile[ip, 0], jf]`

New: `h.ap(pattern=…, offset=0, vector_offset=idx_tile, indirect_dim=0)`

Only rows of a whole HBM tensor of known rank can be picked so, by a (P, 1) tile in SBUF; anything
else stays, with a TODO. Beside them stand index tensors and numbers, no slices.
""",
    examples=(Example.kernel(_BAD, _GOOD, parameters="x, numbers"),),
)
