"""NKI1133: `nl.load` is an allocation and `nisa.dma_copy`."""

from nki_migrate.findings import Safety
from nki_migrate.lower.moves import lower_load
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
rows, cols = x.shape
for i in nl.affine_range(rows // 128):
    tile = nl.load(x[i * 128:(i + 1) * 128, 0:cols], dtype=nl.bfloat16)
"""
_GOOD = """
rows, cols = x.shape
for i in nl.affine_range(rows // 128):
    tile = nl.ndarray((128, cols), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[i * 128:(i + 1) * 128, 0:cols])
"""

RULE = Rule(
    id="NKI1133",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="`nl.load` is an allocation and `nisa.dma_copy`",
    page="""\
Old: `x = nl.load(src)`

New: `x = nl.ndarray(shape, dtype=…, buffer=nl.sbuf)` and `nisa.dma_copy(dst=x, src=src)`

The tile has the shape of the access and the dtype of the source, or of `dtype=`: DMA casts. It
is allocated where the load stood (trap T2), so each iteration has its own.
""",
    calls={"nl.load": lower_load},
    examples=(Example.kernel(_BAD, _GOOD),),
)
