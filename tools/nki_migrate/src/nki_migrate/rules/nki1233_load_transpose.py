"""NKI1233: `nl.load_transpose2d`."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
turned = nl.load_transpose2d(x[0:128, 0:512])
"""
_GOOD = """
# TODO(nki-migrate NKI1233): `nl.load_transpose2d` has no counterpart that this tool writes yet
turned = nl.load_transpose2d(x[0:128, 0:512])
"""

RULE = Rule(
    id="NKI1233",
    step=("0.1", "0.2"),
    klass="c",
    safety=Safety.MANUAL,
    title="`nl.load_transpose2d`",
    page="""\
Old: `nl.load_transpose2d(h)`

New: `nisa.dma_transpose` or a load and a transpose

dma_transpose has limits on dtype and shape; not translated yet.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
