"""NKI1172: masks that are no rectangle."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
ip = nl.arange(128)[:, None]
jf = nl.arange(128)[None, :]
lower = nl.load(x[ip, jf], mask=(ip >= jf))
"""
_GOOD = """
ip = nl.arange(128)[:, None]
jf = nl.arange(128)[None, :]
# TODO(nki-migrate NKI1172): mask `ip >= jf` is not a rectangle: it compares two index tensors; no slice says the same
lower = nl.load(x[ip, jf], mask=(ip >= jf))
"""  # noqa: E501

RULE = Rule(
    id="NKI1172",
    step=("0.1", "0.2"),
    klass="c",
    safety=Safety.MANUAL,
    title="masks that are no rectangle",
    page="""\
Old: `mask=(ip >= jf)`, a mask that arrives as a parameter

New: by hand; causal patterns are `nisa.affine_select` or `nisa.range_select`

No slice says the same.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
