"""NKI1119: `nl.program_id` of a grid axis is a loop variable."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
row = nl.program_id(0)
out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
tile = nl.load(x[row, 0:128, 0:512])
nl.store(out[row, 0:128, 0:512], value=tile)
return out
"""
_GOOD = """
row = nl.program_id(0)
out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[row, 0:128, 0:512])
nisa.dma_copy(dst=out[row, 0:128, 0:512], src=tile)
return out
"""

RULE = Rule(
    id="NKI1119",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="`nl.program_id` of a grid axis is a loop variable",
    page="""\
Old: `i = nl.program_id(0)`

New: the variable of the loop over that axis

See NKI1118.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
