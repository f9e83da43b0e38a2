"""NKI1155: index axes in permuted order."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
ip = nl.arange(128)[:, None]
jf = nl.arange(128)[None, :]
turned = nl.copy(tile[jf, ip])
"""
_GOOD = """
tile = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
ip = nl.arange(128)[:, None]
jf = nl.arange(128)[None, :]
# TODO(nki-migrate NKI1155): `tile` is on chip, and its partition dimension is not indexed by axis 0 alone: that needs a transpose
turned = nl.copy(tile[jf, ip])
"""  # noqa: E501

RULE = Rule(
    id="NKI1155",
    step=("0.1", "0.2"),
    klass="c",
    safety=Safety.MANUAL,
    title="index axes in permuted order",
    page="""\
Old: `t[jf, ip]`

New: HBM: `.ap` with the steps swapped; SBUF: a transpose

Read as two slices this would transpose the data silently (trap T6). In HBM the tool writes the
access pattern; on chip it leaves a TODO.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
