"""NKI1180: `nisa` calls write to a destination."""

from nki_migrate.findings import Safety
from nki_migrate.lower.instructions import INSTRUCTIONS, instruction
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

# rules of their own: NKI1194, NKI1197
_ELSEWHERE = {"tensor_reduce", "max8", "nc_find_index8", "nc_match_replace8"}

_BAD = """
tile = nl.load(x[0:128, 0:512])
half = nisa.activation(op=nl.sigmoid, data=tile, scale=0.5)
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:128, 0:512])
half = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.activation(dst=half, op=nl.sigmoid, data=tile, scale=0.5)
"""

RULE = Rule(
    id="NKI1180",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="`nisa` calls write to a destination",
    page="""\
Old: `x = nisa.activation(op=nl.exp, data=a)`

New: `x = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)` and `nisa.activation(dst=x,
op=nl.exp, data=a)`

Shape, dtype and buffer of the result are those 0.1 gave it (section 4 of the rule catalogue).
`a = f(a)` writes in place only where nobody else holds the old tile (trap T3).
""",
    calls={f"nisa.{name}": instruction for name in INSTRUCTIONS if name not in _ELSEWHERE},
    examples=(Example.kernel(_BAD, _GOOD),),
)
