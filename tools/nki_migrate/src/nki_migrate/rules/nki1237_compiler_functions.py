"""NKI1237: `nl.all_reduce`, `nl.atomic_rmw`, `nl.static_cast`."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
a = nl.load(x[0:128, 0:512])
small = nl.static_cast(a, nl.int8)
"""
_GOOD = """
a = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=a, src=x[0:128, 0:512])
# TODO(nki-migrate NKI1237): `nl.static_cast` has no counterpart that this tool writes yet
small = nl.static_cast(a, nl.int8)
"""

RULE = Rule(
    id="NKI1237",
    step=("0.1", "0.2"),
    klass="c",
    safety=Safety.MANUAL,
    title="`nl.all_reduce`, `nl.atomic_rmw`, `nl.static_cast`",
    page="""\
Old: `nl.all_reduce(…)`

New: by hand

They belonged to the old compiler.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
