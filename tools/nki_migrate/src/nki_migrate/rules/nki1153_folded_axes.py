"""NKI1153: several index tensors in one dimension are an access pattern."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
ip = nl.arange(128)[:, None, None]
jf = nl.arange(8)[None, :, None]
kf = nl.arange(32)[None, None, :]
every_other = nl.copy(tile[ip, jf * 64 + kf])
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
every_other = nl.ndarray((128, 8, 32), dtype=x.dtype, buffer=nl.sbuf)
nisa.tensor_copy(
    dst=every_other,
    src=tile.ap(pattern=[[512, 128], [64, 8], [1, 32]], offset=0),
)
"""

RULE = Rule(
    id="NKI1153",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="several index tensors in one dimension are an access pattern",
    page="""\
Old: `t[ip, jf * 64 + kf]`

New: `t.ap(pattern=[[free, 128], [64, n], [1, 64]], offset=0)`

One pair [step, count] per index axis, slowest first, in elements of the tensor's storage. The
access has the rank of the index tensors, not of the tensor.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
