"""NKI1234: `nl.where`."""

from nki_migrate.findings import Safety
from nki_migrate.lower.choose import lower_where
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
a = nl.load(x[0:128, 0:512])
chosen = nl.where(a, a, 0.0, dtype=nl.float32)
"""
_GOOD = """
a = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=a, src=x[0:128, 0:512])
predicate = nl.ndarray((128, 512), dtype=nl.uint8, buffer=nl.sbuf)
nisa.tensor_scalar(dst=predicate, data=a, op0=nl.not_equal, operand0=0.0)
chosen = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
nisa.memset(dst=chosen, value=0.0)
a_cast = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
nisa.tensor_copy(dst=a_cast, src=a)
nisa.tensor_copy_predicated(dst=chosen, src=a_cast, predicate=predicate)
"""

RULE = Rule(
    id="NKI1234",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="`nl.where`",
    page="""\
Old: `t = nl.where(c, x, y)`

New: y into the tile (a copy, or a memset for a number), then
`nisa.tensor_copy_predicated(dst=t, src=x, predicate=…)`

The predicate is of unsigned integers: a condition of another dtype is compared with 0 first. The
copy under a predicate does not convert: x is cast to the result's dtype before.
""",
    calls={"nl.where": lower_where},
    examples=(Example.kernel(_BAD, _GOOD),),
)
