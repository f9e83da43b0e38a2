"""NKI1271: gather and scatter."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
rows = nl.load(numbers[0:128, 0:1])
jf = nl.arange(512)[None, :]
ip = nl.arange(128)[:, None]
tile = nl.load(x[rows[ip, 0], jf])
"""
_GOOD = """
rows = nl.ndarray((128, 1), dtype=numbers.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=rows, src=numbers[0:128, 0:1])
jf = nl.arange(512)[None, :]
ip = nl.arange(128)[:, None]
# TODO(nki-migrate NKI1271): an index that is itself a tensor (gather or scatter)
tile = nl.load(x[rows[ip, 0], jf])
"""

RULE = Rule(
    id="NKI1271",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.MANUAL,
    title="gather and scatter",
    page="""\
Old: `h[idx_tile[ip, 0], jf]`

New: `h.ap(…, vector_offset=idx)`

Not translated yet.
""",
    examples=(Example.kernel(_BAD, _GOOD, parameters="x, numbers"),),
)
