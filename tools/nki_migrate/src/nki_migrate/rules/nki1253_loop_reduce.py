"""NKI1253: `nl.loop_reduce`."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
for i in nl.affine_range(4):
    a = nl.load(x[i, 0:128, 0:512])
    total = nl.loop_reduce(a, op=nl.add, loop_indices=[i])
"""
_GOOD = """
for i in nl.affine_range(4):
    a = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=a, src=x[i, 0:128, 0:512])
    # TODO(nki-migrate NKI1253): `nl.loop_reduce` has no counterpart that this tool writes yet
    total = nl.loop_reduce(a, op=nl.add, loop_indices=[i])
"""

RULE = Rule(
    id="NKI1253",
    step=("0.1", "0.2"),
    klass="c",
    safety=Safety.MANUAL,
    title="`nl.loop_reduce`",
    page="""\
Old: `y = nl.loop_reduce(x, op, loop_indices=[i])`

New: an accumulator outside the loop, initialised with the operator's identity

The loop to hoist over is the author's knowledge; not translated yet.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
