"""NKI1198: instructions whose result is left to a human."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.load(x[0:128, 0:512])
picked = nisa.local_gather(tile, tile, 1, 16)
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:128, 0:512])
# TODO(nki-migrate NKI1198): `nisa.local_gather` writes to `dst=` from 0.2 on: allocate the result
picked = nisa.local_gather(tile, tile, 1, 16)
"""

RULE = Rule(
    id="NKI1198",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.MANUAL,
    title="instructions whose result is left to a human",
    page="""\
Old: `picked = nisa.local_gather(…)`

New: `picked = nl.ndarray(…)`, then `nisa.local_gather(picked, …)`

Instructions for which this tool does not know the shape of the result. Instructions that 0.2 and
later do not have are reported here, too, as gone.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
