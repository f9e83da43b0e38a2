"""NKI1272: one column of a tile of row numbers."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
rows = nl.ndarray((128, 4), dtype=nl.int32, buffer=nl.sbuf)
nisa.dma_copy(dst=rows, src=numbers[0:128, 0:4])
ip = nl.arange(128)[:, None]
jf = nl.arange(64)[None, :]
for k in nl.affine_range(4):
    tile = nl.load(x[rows[ip, k], jf])
"""
_GOOD = """
rows = nl.ndarray((128, 4), dtype=nl.int32, buffer=nl.sbuf)
nisa.dma_copy(dst=rows, src=numbers[0:128, 0:4])
for k in nl.affine_range(4):
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(
        dst=tile,
        src=x.ap(pattern=[[x.shape[1], 128], [1, 64]], offset=0, vector_offset=rows[:, nl.ds(k, 1)], indirect_dim=0),
    )
"""  # noqa: E501

RULE = Rule(
    id="NKI1272",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="a column of row numbers is a slice of their tile",
    page="""\
Old: `x[rows[ip, k], jf]` in a loop over k

New: `x.ap([…], offset=0, vector_offset=rows[:, nl.ds(k, 1)], indirect_dim=0)`

See NKI1271 for what may be picked.
""",
    examples=(Example.kernel(_BAD, _GOOD, parameters="x, numbers"),),
)
