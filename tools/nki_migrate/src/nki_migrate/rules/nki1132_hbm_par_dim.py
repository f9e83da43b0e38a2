"""NKI1132: `nl.par_dim` in the shape of an HBM tensor goes."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
out = nl.ndarray((4, nl.par_dim(128), 512), dtype=x.dtype, buffer=nl.shared_hbm)
return out
"""
_GOOD = """
out = nl.ndarray((4, 128, 512), dtype=x.dtype, buffer=nl.shared_hbm)
return out
"""

RULE = Rule(
    id="NKI1132",
    step=("0.1", "0.2"),
    klass="a",
    safety=Safety.SAFE,
    title="`nl.par_dim` in the shape of an HBM tensor goes",
    page="""\
Old: `nl.ndarray((n, nl.par_dim(128), f), …, buffer=nl.shared_hbm)`

New: `nl.ndarray((n, 128, f), …, buffer=nl.shared_hbm)`

HBM has no partitions; the shape stays.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
