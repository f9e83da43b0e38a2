"""NKI1229: composite functions are several instructions."""

from nki_migrate.findings import Safety
from nki_migrate.lower.reductions import lower_mean
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.load(x[0:128, 0:512])
average = nl.mean(tile, axis=1)
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:128, 0:512])
tile_mean = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
nisa.tensor_reduce(dst=tile_mean, op=nl.add, data=tile, axis=1)
average = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.sbuf)
nisa.tensor_scalar(dst=average, data=tile_mean, op0=nl.multiply, operand0=1.0 / 512)
"""

RULE = Rule(
    id="NKI1229",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="composite functions are several instructions",
    page="""\
Old: `m = nl.mean(x, axis=1)`

New: a sum in float32 and a multiplication by `1 / n`

`nl.softmax`, `nl.var`, `nl.rms_norm` stand for several instructions, of which those that a kernel
needs depend on how it uses them: they are left to a human. From 0.3 on `nl` has them again, so
that a call which is left runs; 0.2 has none of them.
""",
    calls={"nl.mean": lower_mean},
    examples=(Example.kernel(_BAD, _GOOD),),
)
