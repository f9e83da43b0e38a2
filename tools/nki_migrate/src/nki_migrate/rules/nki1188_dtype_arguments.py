"""NKI1188: `dtype=` is the dtype of the destination."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.load(x[0:128, 0:512])
wide = nisa.tensor_copy(tile, dtype=nl.float32)
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:128, 0:512])
wide = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
nisa.tensor_copy(dst=wide, src=tile)
"""

RULE = Rule(
    id="NKI1188",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="`dtype=` is the dtype of the destination",
    page="""\
Old: `nisa.activation(op=nl.exp, data=a, dtype=nl.float32)`

New: the new tile has `dtype=nl.float32`

Instructions round to their destination.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
