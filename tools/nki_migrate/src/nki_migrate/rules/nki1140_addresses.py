"""NKI1140–NKI1142: tensors with addresses of their own."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULES"]

_BAD = """
address = 0
tiles = nl.ndarray((8, nl.par_dim(128), 512), dtype=nl.float32, buffer=nki.compiler.sbuf.mod_alloc(base_addr=address, num_free_tiles=(2,)))
address += 2 * 512 * 4
"""  # noqa: E501
_GOOD = """
tiles_buffers = []
for _ in range(2):
    tiles_buffers.append(nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf))
tiles = []
for i_tiles in range(8):
    tiles.append(tiles_buffers[i_tiles % 2])
"""
_BAD_PSUM = """
tile = nl.ndarray((128, 512), dtype=nl.float32, buffer=nki.compiler.psum.mod_alloc(base_bank=1))
"""
_BAD_FUNCTION = """
tile = nl.ndarray((128, 512), dtype=nl.float32, buffer=nki.compiler.sbuf.alloc(place))
"""
_GOOD_TILE = """
tile = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.{})
"""

RULES = (
    Rule(
        id="NKI1140",
        step=("0.1", "0.2"),
        klass="b",
        safety=Safety.SAFE,
        title="`sbuf.mod_alloc`: the compiler places tiles",
        page="""\
Old: `buffer=ncc.sbuf.mod_alloc(base_addr=…, num_free_tiles=(2,))`

New: `buffer=nl.sbuf`; blocks that shared a tile still do: block i is tile i modulo 2 of a list

To place tiles yourself again, give `address=(partition, base_addr + (i % 2) * bytes)`.

**Trap.** Texts disagree whether the second part of `address` counts bytes or elements.
""",
        examples=(Example.kernel(_BAD, _GOOD),),
    ),
    Rule(
        id="NKI1141",
        step=("0.1", "0.2"),
        klass="b",
        safety=Safety.SAFE,
        title="`psum.mod_alloc`: the compiler chooses banks",
        page="""\
Old: `buffer=ncc.psum.mod_alloc(base_bank=1, num_bank_tiles=(2,))`

New: `buffer=nl.psum`; blocks that shared a bank still do: block i is tile i modulo 2 of a list

PSUM has 8 banks of 2 KiB per partition; `address=(0, bank * 2048)` places a tile by hand.
""",
        examples=(Example.kernel(_BAD_PSUM, _GOOD_TILE.format("psum")),),
    ),
    Rule(
        id="NKI1142",
        step=("0.1", "0.2"),
        klass="b",
        safety=Safety.SAFE,
        title="`alloc(function)`: the compiler places tiles",
        page="""\
Old: `buffer=ncc.sbuf.alloc(function)`, the function giving the address of each block

New: `buffer=nl.sbuf`, a tile of its own for each block

**Trap.** Blocks that the function put in one place no longer share it: more memory is held.
""",
        examples=(Example.kernel(_BAD_FUNCTION, _GOOD_TILE.format("sbuf"), parameters="x, place"),),
    ),
)
