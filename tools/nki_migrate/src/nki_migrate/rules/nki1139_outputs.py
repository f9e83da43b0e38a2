"""NKI1139: a kernel returns tensors in `nl.shared_hbm`."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
out = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.hbm)
return out
"""
_GOOD = """
out = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.shared_hbm)
return out
"""

RULE = Rule(
    id="NKI1139",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="a kernel returns tensors in `nl.shared_hbm`",
    page="""\
Old: `out = nl.ndarray(shape, dtype=…, buffer=nl.hbm)`, returned

New: `buffer=nl.shared_hbm`

From 0.3 on `nl.hbm` is the kernel's private memory.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
