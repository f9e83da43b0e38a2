"""NKI1230: `nl.matmul` is `nisa.nc_matmul`."""

from nki_migrate.findings import Safety
from nki_migrate.lower.matmul import lower_nl_matmul
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
a, b = nl.load(x[0:128, 0:64]), nl.load(y[0:128, 0:512])
product = nl.matmul(a, b, transpose_x=True)
"""
_GOOD = """
a = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=a, src=x[0:128, 0:64])
b = nl.ndarray((128, 512), dtype=y.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=b, src=y[0:128, 0:512])
product = nl.ndarray((64, 512), dtype=nl.float32, buffer=nl.psum)
nisa.nc_matmul(dst=product, stationary=a, moving=b)
"""

RULE = Rule(
    id="NKI1230",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="`nl.matmul` is `nisa.nc_matmul`",
    page="""\
Old: `nl.matmul(a, b, transpose_x=True)`

New: `nisa.nc_matmul(dst, stationary=a, moving=b)`

Without `transpose_x` 0.1 put a transpose in front; it is written out.
""",
    calls={"nl.matmul": lower_nl_matmul},
    examples=(Example.kernel(_BAD, _GOOD, parameters="x, y"),),
)
