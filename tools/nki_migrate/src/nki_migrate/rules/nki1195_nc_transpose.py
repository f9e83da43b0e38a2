"""NKI1195: `nisa.nc_transpose` writes to PSUM."""

from nki_migrate.findings import Safety
from nki_migrate.lower.matmul import lower_nc_transpose
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.load(x[0:64, 0:128])
turned = nisa.nc_transpose(tile)
"""
_GOOD = """
tile = nl.ndarray((64, 128), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:64, 0:128])
turned = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.psum)
nisa.nc_transpose(dst=turned, data=tile)
"""

RULE = Rule(
    id="NKI1195",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="`nisa.nc_transpose` writes to PSUM",
    page="""\
Old: `t = nisa.nc_transpose(x)`

New: `t = nl.ndarray((F, P), dtype=x.dtype, buffer=nl.psum)` and `nisa.nc_transpose(dst=t, data=x)`

The tensor engine keeps the dtype of its input.
""",
    calls={"nisa.nc_transpose": lower_nc_transpose},
    examples=(Example.kernel(_BAD, _GOOD),),
)
