"""NKI1143: direct allocation."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nki.compiler.sbuf.auto_alloc())
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
"""
_BAD_BLOCKS = """
address = 0
tiles = nl.ndarray((8, nl.par_dim(128), 512), dtype=nl.float32, buffer=nki.compiler.sbuf.mod_alloc(base_addr=address, num_free_tiles=(2,)))
address += 2 * 512 * 4
"""  # noqa: E501
_GOOD_BLOCKS = """
tiles_buffers = []
for _ in range(2):
    tiles_buffers.append(nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf))
tiles = []
for i_tiles in range(8):
    tiles.append(tiles_buffers[i_tiles % 2])
"""

RULE = Rule(
    id="NKI1143",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="direct allocation",
    page="""\
Old: `buffer=ncc.sbuf.mod_alloc(base_addr=…, num_free_tiles=(2,))`, `ncc.psum.alloc(function)`

New: `buffer=nl.sbuf`; the compiler places the tile. Blocks that shared a tile still do: block i is
tile i modulo 2 of a list

Code that only counted addresses goes. What a call of your own returns (`buffer=pool.allocate(…)`)
is known from an observed run (`--cases`, `--facts`). To place tiles yourself again, give
`address=(partition, byte)`: texts disagree whether it counts bytes or elements.
""",
    examples=(Example.kernel(_BAD, _GOOD), Example.kernel(_BAD_BLOCKS, _GOOD_BLOCKS)),
)
