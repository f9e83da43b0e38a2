"""NKI1194: `nisa.tensor_reduce` writes to a destination."""

from nki_migrate.findings import Safety
from nki_migrate.lower.instructions import instruction
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.load(x[0:128, 0:512])
largest = nisa.tensor_reduce(nl.max, tile, axis=[1])
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:128, 0:512])
largest = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.sbuf)
nisa.tensor_reduce(dst=largest, op=nl.maximum, data=tile, axis=[1])
"""

RULE = Rule(
    id="NKI1194",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="`nisa.tensor_reduce` writes to a destination",
    page="""\
Old: `m = nisa.tensor_reduce(np.max, x, axis=[1])`

New: a `(P, 1)` tile and `nisa.tensor_reduce(dst=m, op=nl.maximum, data=x, axis=[1])`

The result has at least two dimensions.
""",
    calls={"nisa.tensor_reduce": instruction},
    examples=(Example.kernel(_BAD, _GOOD),),
)
