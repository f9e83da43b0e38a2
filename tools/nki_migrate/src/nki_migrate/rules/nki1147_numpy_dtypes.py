"""NKI1147: kernel code takes NKI dtypes."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.ndarray((128, 512), dtype=np.float32, buffer=nl.sbuf)
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
"""

RULE = Rule(
    id="NKI1147",
    step=("0.1", "0.2"),
    klass="a",
    safety=Safety.SAFE,
    title="kernel code takes NKI dtypes",
    page="""\
Old: `dtype=np.float32`

New: `dtype=nl.float32`

The kernel compiler refuses NumPy dtypes. Host code keeps its own.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
