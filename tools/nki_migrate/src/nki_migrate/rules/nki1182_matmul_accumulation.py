"""NKI1182: matmuls into PSUM accumulate by themselves."""

from nki_migrate.findings import Safety
from nki_migrate.lower.matmul import lower_nc_matmul
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
a = nl.load(x[0:128, 0:128])
acc = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
acc[...] += nisa.nc_matmul(a, a)
"""
_GOOD = """
a = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=a, src=x[0:128, 0:128])
acc = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
nisa.nc_matmul(dst=acc, stationary=a, moving=a)
"""

RULE = Rule(
    id="NKI1182",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="matmuls into PSUM accumulate by themselves",
    page="""\
Old: `acc += nisa.nc_matmul(a, b)`

New: `nisa.nc_matmul(dst=acc, stationary=a, moving=b)`

The first product at a location overwrites, later ones add. To a tile that may hold something else
than zeros and products (a copy, a number, what a caller put there) the product is added by an
instruction of its own: NKI1184.
""",
    calls={"nisa.nc_matmul": lower_nc_matmul},
    examples=(Example.kernel(_BAD, _GOOD),),
)
