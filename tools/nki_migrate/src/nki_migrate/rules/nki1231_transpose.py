"""NKI1231: `nl.transpose` is `nisa.nc_transpose` and a copy."""

from nki_migrate.findings import Safety
from nki_migrate.lower.matmul import lower_nl_transpose
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.load(x[0:64, 0:128])
turned = nl.transpose(tile)
"""
_GOOD = """
tile = nl.ndarray((64, 128), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:64, 0:128])
tile_T = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.psum)
nisa.nc_transpose(dst=tile_T, data=tile)
turned = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
nisa.tensor_copy(dst=turned, src=tile_T)
"""

RULE = Rule(
    id="NKI1231",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="`nl.transpose` is `nisa.nc_transpose` and a copy",
    page="""\
Old: `t = nl.transpose(x)`

New: nc_transpose into PSUM, tensor_copy into SBUF

0.1 returned a tile in SBUF.
""",
    calls={"nl.transpose": lower_nl_transpose},
    examples=(Example.kernel(_BAD, _GOOD),),
)
