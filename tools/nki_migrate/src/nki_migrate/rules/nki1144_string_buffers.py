"""NKI1144: buffers are objects, not strings."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer="sbuf")
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
"""

RULE = Rule(
    id="NKI1144",
    step=("0.1", "0.2"),
    klass="a",
    safety=Safety.SAFE,
    title="buffers are objects, not strings",
    page="""\
Old: `buffer=\"sbuf\"`

New: `buffer=nl.sbuf`

Strings are an error from 0.3 on.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
