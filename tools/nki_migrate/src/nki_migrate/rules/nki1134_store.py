"""NKI1134: `nl.store` is `nisa.dma_copy`."""

from nki_migrate.findings import Safety
from nki_migrate.lower.moves import lower_store
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
out = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.shared_hbm)
tile = nl.load(x[0:128, 0:512])
nl.store(out, value=tile * 2.0)
return out
"""
_GOOD = """
out = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.shared_hbm)
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:128, 0:512])
out_tile = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
nisa.tensor_scalar(dst=out_tile, data=tile, op0=nl.multiply, operand0=2.0)
nisa.dma_copy(dst=out, src=out_tile)
return out
"""

RULE = Rule(
    id="NKI1134",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="`nl.store` is `nisa.dma_copy`",
    page="""\
Old: `nl.store(dst, value)`

New: `nisa.dma_copy(dst=dst, src=value)`

The value has to be a tile in SBUF: an expression gets a temporary, a PSUM tile is copied first
(0.1 inserted that copy itself).
""",
    calls={"nl.store": lower_store},
    examples=(Example.kernel(_BAD, _GOOD),),
)
