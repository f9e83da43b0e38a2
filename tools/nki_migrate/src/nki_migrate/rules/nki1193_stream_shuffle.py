"""NKI1193: `nisa.nc_stream_shuffle` has its destination first."""

from nki_migrate.findings import Safety
from nki_migrate.lower.given import into_given
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.load(x[0:32, 0:512])
turned = nl.ndarray((32, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.nc_stream_shuffle(tile, turned, [31, *range(31)])
"""
_GOOD = """
tile = nl.ndarray((32, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:32, 0:512])
turned = nl.ndarray((32, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.nc_stream_shuffle(dst=turned, src=tile, shuffle_mask=[31, *range(31)])
"""

RULE = Rule(
    id="NKI1193",
    step=("0.1", "0.2"),
    klass="a",
    safety=Safety.SAFE,
    title="`nisa.nc_stream_shuffle` has its destination first",
    page="""\
Old: `nisa.nc_stream_shuffle(src, dst, shuffle_mask)`

New: `nisa.nc_stream_shuffle(dst=dst, src=src, shuffle_mask=shuffle_mask)`

**Trap.** Left alone a positional call still runs, and shuffles the destination into the source.
""",
    calls={
        "nisa.nc_stream_shuffle": into_given(
            "NKI1193", "`nisa.nc_stream_shuffle` has its destination first"
        )
    },
    examples=(Example.kernel(_BAD, _GOOD),),
)
