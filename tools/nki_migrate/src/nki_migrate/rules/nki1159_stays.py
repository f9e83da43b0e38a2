"""What of 0.1 stays as it is."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULES"]

_DS = """
tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[nl.ds(128, 128), nl.ds(0, 64)])
"""
_RANGE = """
for i in range(4):
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[i])
"""
_NUMBERS = """
for i in range(4):
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[i * 128 : min(i * 128 + 128, 512), 0:64])
"""
_WRAPPED_OLD = """
import functools

import neuronxcc.nki as nki

def named(function):
    @functools.wraps(function)
    def inner(*arguments):
        return function(*arguments)
    return inner

@named
@nki.jit
def kernel(x):
    return x
"""
_WRAPPED = _WRAPPED_OLD.replace("import neuronxcc.nki as nki", "import nki")

RULES = (
    Rule(
        id="NKI1159",
        step=("0.1", "0.2"),
        klass="a",
        safety=Safety.SAFE,
        title="`nl.ds(start, size)` stays",
        page="""\
Old: `x[nl.ds(128, 128)]`

New: the same, or a slice where an index tensor stood beside it

A start that the device computes is NKI1270.
""",
        examples=(Example.kernel(_DS, _DS),),
        keeps=True,
    ),
    Rule(
        id="NKI1252",
        step=("0.1", "0.2"),
        klass="a",
        safety=Safety.SAFE,
        title="`range` in a kernel stays",
        page="""\
Old: `for i in range(4)`

New: the same

0.1 silently took it for `sequential_range`; from 0.2 on every range is Python's and is unrolled.

**Trap.** What the body does to Python values happens in every iteration now (NKI1254).
""",
        examples=(Example.kernel(_RANGE, _RANGE),),
        keeps=True,
    ),
    Rule(
        id="NKI1255",
        step=("0.1", "0.2"),
        klass="a",
        safety=Safety.SAFE,
        title="arithmetic on loop variables stays",
        page="""\
Old: `i * 128 + ip` with a symbolic `i`

New: `i * 128 : i * 128 + 128`, `i` being an int

Loop variables are ints from 0.2 on: `min`, `%` and `if` work on them. Index tensors beside them are
NKI1151.
""",
        examples=(Example.kernel(_NUMBERS, _NUMBERS),),
        keeps=True,
    ),
    Rule(
        id="NKI1259",
        step=("0.1", "0.2"),
        klass="a",
        safety=Safety.SAFE,
        title="decorators around a kernel stay",
        page="""\
Old: `@named` above `@nki.jit`

New: the same; SDK 2.27 refused them, 2.28 and later do not
""",
        examples=(Example.of(_WRAPPED_OLD, _WRAPPED),),
        keeps=True,
    ),
)
