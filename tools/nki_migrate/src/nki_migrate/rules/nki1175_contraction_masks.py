"""NKI1175: masks on matrix products and transposes."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
a = nl.load(x[0:128, 0:128])
k = nl.arange(128)[:, None]
product = nisa.nc_matmul(a, a, mask=(k < 64))
"""
_GOOD = """
a = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=a, src=x[0:128, 0:128])
k = nl.arange(128)[:, None]
# TODO(nki-migrate NKI1175): a mask on a matrix product
product = nisa.nc_matmul(a, a, mask=(k < 64))
"""

RULE = Rule(
    id="NKI1175",
    step=("0.1", "0.2"),
    klass="c",
    safety=Safety.MANUAL,
    title="masks on matrix products and transposes",
    page="""\
Old: `nisa.nc_matmul(a, b, mask=…)`

New: slices of both operands, by hand

Whether zeros outside the mask were relied on only the author knows.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
