"""NKI1143: direct allocation."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nki.compiler.sbuf.auto_alloc())
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
"""
RULE = Rule(
    id="NKI1143",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="allocation by functions of your own, mixed with addresses",
    page="""\
Old: `buffer=ncc.sbuf.auto_alloc()`, `buffer=pool.allocate(…)`, variables that count addresses

New: `buffer=nl.sbuf`; the compiler places the tile (addresses of their own: NKI1140 to NKI1142)

Code that only counted addresses goes. What a call of your own returns (`buffer=pool.allocate(…)`)
is known from an observed run (`--cases`, `--facts`). To place tiles yourself again, give
`address=(partition, byte)`: texts disagree whether it counts bytes or elements.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
