"""NKI1232: `nl.copy` is `nisa.tensor_copy`."""

from nki_migrate.findings import Safety
from nki_migrate.lower.moves import lower_copy
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.load(x[0:128, 0:512])
small = nl.copy(tile, dtype=nl.bfloat16)
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:128, 0:512])
small = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
nisa.tensor_copy(dst=small, src=tile)
"""

RULE = Rule(
    id="NKI1232",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="`nl.copy` is `nisa.tensor_copy`",
    page="""\
Old: `y = nl.copy(x, dtype=nl.bfloat16)`

New: an allocation and `nisa.tensor_copy(dst=y, src=x)`

In SBUF unless assigned to a PSUM tensor.
""",
    calls={"nl.copy": lower_copy},
    examples=(Example.kernel(_BAD, _GOOD),),
)
