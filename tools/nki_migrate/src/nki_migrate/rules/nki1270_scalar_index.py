"""NKI1270: run-time scalar indices."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
start = nl.load(starts[0:1, 0:1])
tile = nl.load(x[nl.ds(start, 128), 0:512])
"""
_GOOD = """
start = nl.ndarray((1, 1), dtype=starts.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=start, src=starts[0:1, 0:1])
# TODO(nki-migrate NKI1270): `nl.ds` with a start that is not a compile-time number
tile = nl.load(x[nl.ds(start, 128), 0:512])
"""

RULE = Rule(
    id="NKI1270",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.MANUAL,
    title="run-time scalar indices",
    page="""\
Old: `h[idx_tile, ip, jf]`

New: `h.ap(…, scalar_offset=idx)`

Not translated yet.
""",
    examples=(Example.kernel(_BAD, _GOOD, parameters="x, starts"),),
)
