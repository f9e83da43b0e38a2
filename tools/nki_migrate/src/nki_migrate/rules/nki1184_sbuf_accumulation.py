"""NKI1184: a product added to SBUF is made in PSUM first."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
a = nl.load(x[0:128, 0:128])
total = nl.zeros((128, 128), dtype=nl.float32, buffer=nl.sbuf)
for k in nl.affine_range(4):
    total += nisa.nc_matmul(a, a)
"""
_GOOD = """
a = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=a, src=x[0:128, 0:128])
total = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
nisa.memset(dst=total, value=0.0)
for k in nl.affine_range(4):
    product = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=product, stationary=a, moving=a)
    nisa.tensor_tensor(dst=total, data1=total, data2=product, op=nl.add)
"""

RULE = Rule(
    id="NKI1184",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="a product added to SBUF is made in PSUM first",
    page="""\
Old: `t += nisa.nc_matmul(a, b)`, `t` in SBUF

New: a product in PSUM and `nisa.tensor_tensor(dst=t, data1=t, data2=product, op=nl.add)`

The tensor engine writes PSUM only.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
