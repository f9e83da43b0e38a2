"""NKI1183: a product that replaces a PSUM tile gets a tile of its own."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
a = nl.load(x[0:128, 0:128])
latest = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
for k in nl.affine_range(4):
    latest[...] = nisa.nc_matmul(a, a)
"""
_GOOD = """
a = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=a, src=x[0:128, 0:128])
latest = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
for k in nl.affine_range(4):
    product = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=product, stationary=a, moving=a)
    nisa.tensor_copy(dst=latest, src=product)
"""

RULE = Rule(
    id="NKI1183",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="a product that replaces a PSUM tile gets a tile of its own",
    page="""\
Old: `acc[...] = nisa.nc_matmul(a, b)` with `acc` from outside the loop

New: a fresh PSUM tile at this spot, copied to `acc`

Written to the old tile the product would be added to the last iteration's (trap T4).
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
