"""NKI1136: a PSUM accumulator is not zeroed."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
a = nl.load(x[0:128, 0:128])
acc = nl.zeros((128, 128), dtype=nl.float32, buffer=nl.psum)
for k in nl.affine_range(4):
    acc += nisa.nc_matmul(a, a)
"""
_GOOD = """
a = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=a, src=x[0:128, 0:128])
acc = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
for k in nl.affine_range(4):
    nisa.nc_matmul(dst=acc, stationary=a, moving=a)
"""

RULE = Rule(
    id="NKI1136",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="a PSUM accumulator is not zeroed",
    page="""\
Old: `acc = nl.zeros(shape, nl.float32, buffer=nl.psum)` and `acc += nisa.nc_matmul(…)`

New: `acc = nl.ndarray(shape, dtype=nl.float32, buffer=nl.psum)` and `nisa.nc_matmul(dst=acc, …)`

The first matmul that writes a location of PSUM overwrites it, later ones add (trap T4). On
NeuronCore-v2 and v3 it is undefined what accumulating onto PSUM that anything but a matmul
wrote gives, so the zeros go when the first use is a matmul that is sure to be reached and fills
the whole tile. Else they stay: the first matmul at a place replaces them.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
