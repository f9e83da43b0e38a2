"""NKI1131: block dimensions become a list of tiles, one tile where it is used, or are folded."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tiles = nl.ndarray((4, nl.par_dim(128), 512), dtype=x.dtype, buffer=nl.sbuf)
for i in nl.affine_range(4):
    tiles[i] = nl.load(x[i])
for i in nl.affine_range(4):
    nl.store(out[i], tiles[i])
"""
_GOOD = """
tiles = []
for _ in range(4):
    tiles.append(nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf))
for i in nl.affine_range(4):
    nisa.dma_copy(dst=tiles[i], src=x[i])
for i in nl.affine_range(4):
    nisa.dma_copy(dst=out[i], src=tiles[i])
"""
_BAD_ALONE = """
tiles = nl.ndarray((4, nl.par_dim(128), 512), dtype=x.dtype, buffer=nl.sbuf)
for i in nl.affine_range(4):
    tiles[i] = nl.load(x[i])
    nl.store(out[i], tiles[i])
"""
_GOOD_ALONE = """
for i in nl.affine_range(4):
    tiles = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tiles, src=x[i])
    nisa.dma_copy(dst=out[i], src=tiles)
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
(`fold`); `auto` makes a tile where it is used if every such place works on one block, else takes
the list, unless the block dimension is sliced

A tensor on chip has one partition dimension and it comes first. A list keeps `t[i]` working and
keeps every tile within one PSUM bank; it cannot be sliced along the blocks. Folding can, but a
folded PSUM tensor may be larger than a bank (2 KiB per partition). All tiles of a list are held
from its first line on: PSUM has room for 8. A tile of its own at the head of a loop body (or of a
function in the kernel) is held while it is used. It replaces the blocks where each such place
begins by writing all of its block, or where the loops say that no two runs share a block.
""",
    examples=(Example.kernel(_BAD, _GOOD), Example.kernel(_BAD_ALONE, _GOOD_ALONE)),
)
