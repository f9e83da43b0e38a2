"""NKI1131: block dimensions become a list of tiles or fold into one tile."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tiles = nl.ndarray((4, nl.par_dim(128), 512), dtype=x.dtype, buffer=nl.sbuf)
for i in nl.affine_range(4):
    tiles[i] = nl.load(x[i])
"""
_GOOD = """
tiles = []
for _ in range(4):
    tiles.append(nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf))
for i in nl.affine_range(4):
    nisa.dma_copy(dst=tiles[i], src=x[i])
"""

RULE = Rule(
    id="NKI1131",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="block dimensions become a list of tiles or fold into one tile",
    page="""\
Old: `t = nl.ndarray((n, nl.par_dim(128), 512), …)`, used as `t[i]`

New: a list of `n` tiles (`--block-dims list`), or one tile `(128, n, 512)` used as `t[:, i, :]`
(`fold`); `auto` takes the list unless the block dimension is sliced

A tensor on chip has one partition dimension and it comes first. A list keeps `t[i]` working and
keeps every tile within one PSUM bank; it cannot be sliced along the blocks. Folding can, but a
folded PSUM tensor may be larger than a bank (2 KiB per partition).
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
