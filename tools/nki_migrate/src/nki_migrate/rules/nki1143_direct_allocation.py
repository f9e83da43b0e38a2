"""NKI1143: direct allocation."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nki.compiler.sbuf.auto_alloc())
"""
_GOOD = """
# TODO(nki-migrate NKI1143): a tensor with an address of its own (direct allocation)
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nki.compiler.sbuf.auto_alloc())
"""

RULE = Rule(
    id="NKI1143",
    step=("0.1", "0.2"),
    klass="c",
    safety=Safety.MANUAL,
    title="direct allocation",
    page="""\
Old: `buffer=ncc.sbuf.mod_alloc(…)`

New: `address=(partition, byte)`, by hand

Not translated yet.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
