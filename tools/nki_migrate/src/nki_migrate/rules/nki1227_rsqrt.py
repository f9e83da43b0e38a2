"""NKI1227: `nl.rsqrt` is an activation."""

from nki_migrate.findings import Safety
from nki_migrate.rules.nki1225_unary import activation_of
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.load(x[0:128, 0:512])
found = nl.rsqrt(tile)
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:128, 0:512])
found = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.activation(dst=found, op=nl.rsqrt, data=tile)
"""

RULE = Rule(
    id="NKI1227",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="`nl.rsqrt` is an activation",
    page="""\
Old: `y = nl.rsqrt(x)`

New: `nisa.activation(dst=y, op=nl.rsqrt, data=x)`

**Trap.** A square root and a reciprocal round twice. The activation reads PSUM, which `nl.rsqrt`
itself does not from 0.5 on (NKI4001).
""",
    calls={"nl.rsqrt": activation_of("rsqrt", "NKI1227")},
    examples=(Example.kernel(_BAD, _GOOD),),
)
