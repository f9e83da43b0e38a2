"""NKI1221: a number or a (P, 1) tile on one side is `nisa.tensor_scalar`."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.load(x[0:128, 0:512], dtype=nl.float32)
largest = nl.max(tile, axis=1)
shifted = nl.subtract(tile, largest)
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:128, 0:512])
largest = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
nisa.tensor_reduce(dst=largest, op=nl.maximum, data=tile, axis=1)
shifted = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
nisa.tensor_scalar(dst=shifted, data=tile, op0=nl.subtract, operand0=largest)
"""

RULE = Rule(
    id="NKI1221",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="a number or a (P, 1) tile on one side is `nisa.tensor_scalar`",
    page="""\
Old: `nl.subtract(x, row_max)`

New: `nisa.tensor_scalar(dst=y, data=x, op0=nl.subtract, operand0=row_max)`

tensor_tensor does not broadcast (trap T10). The operand tile has to be float32.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
