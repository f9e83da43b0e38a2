"""NKI1276: `nisa.dma_copy` keeps its names."""

from nki_migrate.findings import Safety
from nki_migrate.lower.moves import lower_dma_copy
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
out = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.shared_hbm)
ip = nl.arange(128)[:, None]
jf = nl.arange(512)[None, :]
nisa.dma_copy(dst=out[ip, jf], src=x[ip, jf])
return out
"""
_GOOD = """
out = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=x[0:128, 0:512])
return out
"""

RULE = Rule(
    id="NKI1276",
    step=("0.1", "0.2"),
    klass="a",
    safety=Safety.SAFE,
    title="`nisa.dma_copy` keeps its names",
    page="""\
Old: `nisa.dma_copy(dst=a[ip, jf], src=b[ip, jf], mask=…)`

New: the same with slices

Only subscripts and the mask change. `dst_rmw_op=` stays for 0.2, and is NKI2003 from there on.

By position 0.1 took the source first and 0.2 the destination, and kernels of either kind stand
under the old namespace: operands without names are left, to be named.
""",
    calls={"nisa.dma_copy": lower_dma_copy},
    examples=(Example.kernel(_BAD, _GOOD),),
)
