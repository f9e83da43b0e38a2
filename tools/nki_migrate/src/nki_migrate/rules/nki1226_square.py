"""NKI1226: `nl.square` is an activation."""

from nki_migrate.findings import Safety
from nki_migrate.rules.nki1225_unary import activation_of
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.load(x[0:128, 0:512])
found = nl.square(tile)
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:128, 0:512])
found = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.activation(dst=found, op=nl.square, data=tile)
"""

RULE = Rule(
    id="NKI1226",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="`nl.square` is an activation",
    page="""\
Old: `y = nl.square(x)`

New: `nisa.activation(dst=y, op=nl.square, data=x)`

**Trap.** `tensor_tensor(x, x, multiply)` runs on another engine and may round otherwise: the
activation is what 0.1 chose.
""",
    calls={"nl.square": activation_of("square", "NKI1226")},
    examples=(Example.kernel(_BAD, _GOOD),),
)
