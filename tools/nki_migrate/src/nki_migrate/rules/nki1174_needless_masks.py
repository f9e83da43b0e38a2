"""NKI1174: a mask that always holds goes."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
rows, cols = x.shape
assert rows % 128 == 0
ip = nl.arange(128)[:, None]
jf = nl.arange(cols)[None, :]
for i in nl.affine_range(rows // 128):
    tile = nl.load(x[i * 128 + ip, jf], mask=(i * 128 + ip < rows))
"""
_GOOD = """
rows, cols = x.shape
assert rows % 128 == 0
for i in nl.affine_range(rows // 128):
    tile = nl.ndarray((128, cols), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[nl.ds(i * 128, 128), :])
"""

RULE = Rule(
    id="NKI1174",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="a mask that always holds goes",
    page="""\
Old: `assert n % 128 == 0` and `mask=(i * 128 + ip < n)`

New: no mask

Proved from the loop's range and the assertions.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
