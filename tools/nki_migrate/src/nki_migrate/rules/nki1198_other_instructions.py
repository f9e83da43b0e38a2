"""NKI1198: instructions that are not translated yet."""

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
# TODO(nki-migrate NKI1198): `nisa.local_gather` has no counterpart that this tool writes yet
picked = nisa.local_gather(tile, tile, 1, 16)
"""

RULE = Rule(
    id="NKI1198",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.MANUAL,
    title="instructions that are not translated yet",
    page="""\
Old: `nisa.local_gather(…)` and others

New: `dst` first, else the same

Listed so that nothing is left out silently.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
