"""NKI1170: a rectangular mask is a shorter slice."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
rows, cols = x.shape
out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
ip = nl.arange(128)[:, None]
jf = nl.arange(cols)[None, :]
for i in nl.affine_range((rows + 127) // 128):
    tile = nl.load(x[i * 128 + ip, jf], mask=(i * 128 + ip < rows))
    nl.store(out[i * 128 + ip, jf], value=tile, mask=(i * 128 + ip < rows))
return out
"""
_GOOD = """
rows, cols = x.shape
out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
for i in nl.affine_range((rows + 127) // 128):
    tile_rows = min(128, rows - i * 128)
    tile = nl.ndarray((128, cols), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile[0:tile_rows, :], src=x[nl.ds(i * 128, tile_rows), :])
    nisa.dma_copy(dst=out[nl.ds(i * 128, tile_rows), :], src=tile[0:tile_rows, :])
return out
"""

RULE = Rule(
    id="NKI1170",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="a rectangular mask is a shorter slice",
    page="""\
Old: `nl.load(x[i * 128 + ip, jf], mask=(i * 128 + ip < n))`

New: `tile_n = min(128, n - i * 128)` and slices of `tile_n` rows on every operand

What is not covered is not touched. Later instructions on a tile that was filled in part work on
that part (trap T5).
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
