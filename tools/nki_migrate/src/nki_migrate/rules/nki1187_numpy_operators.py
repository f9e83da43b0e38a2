"""NKI1187: operators are NKI's own."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.load(x[0:128, 0:512])
shifted = nisa.tensor_scalar(tile, np.add, 1.0)
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:128, 0:512])
shifted = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.tensor_scalar(dst=shifted, data=tile, op0=nl.add, operand0=1.0)
"""

RULE = Rule(
    id="NKI1187",
    step=("0.1", "0.2"),
    klass="a",
    safety=Safety.SAFE,
    title="operators are NKI's own",
    page="""\
Old: `op=np.add`, `op=np.max`

New: `op=nl.add`, `op=nl.maximum`

The kernel compiler refuses NumPy functions.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
