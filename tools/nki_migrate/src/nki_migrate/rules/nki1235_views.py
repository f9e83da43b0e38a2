"""NKI1235: `nl.expand_dims` and `nl.broadcast_to`."""

from nki_migrate.findings import Safety
from nki_migrate.rules.nki1162_methods import lower_broadcast_to
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
a = nl.load(x[0:128, 0:512])
deeper = nl.expand_dims(a, 1)
"""
_GOOD = """
a = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=a, src=x[0:128, 0:512])
# TODO(nki-migrate NKI1235): `nl.expand_dims` has no counterpart that this tool writes yet
deeper = nl.expand_dims(a, 1)
"""

_BAD_BROADCAST = """
a = nl.load(x[0:128, 0:1])
wide = nl.broadcast_to(a, shape=(128, 512))
"""
_GOOD_BROADCAST = """
a = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=a, src=x[0:128, 0:1])
wide = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.tensor_copy(dst=wide, src=a.ap(pattern=[[1, 128], [0, 512]], offset=0))
"""

RULE = Rule(
    id="NKI1235",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.MANUAL,
    title="`nl.expand_dims` and `nl.broadcast_to`",
    calls={"nl.broadcast_to": lower_broadcast_to},
    page="""\
Old: `nl.expand_dims(x, 1)`

New: `.reshape`, by hand

Old: `nl.broadcast_to(column, shape=(P, F))`

New: a copy of a view with step 0; a row is loaded into all partitions (NKI1164)
""",
    examples=(Example.kernel(_BAD, _GOOD), Example.kernel(_BAD_BROADCAST, _GOOD_BROADCAST)),
)
