"""NKI1273: `nisa.tensor_copy_dynamic_src` and `_dst`."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
a = nl.load(x[0:128, 0:512])
b = nisa.tensor_copy_dynamic_src(a)
"""
_GOOD = """
a = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=a, src=x[0:128, 0:512])
# TODO(nki-migrate NKI1273): `nisa.tensor_copy_dynamic_src` has no counterpart that this tool writes yet
b = nisa.tensor_copy_dynamic_src(a)
"""  # noqa: E501

RULE = Rule(
    id="NKI1273",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.MANUAL,
    title="`nisa.tensor_copy_dynamic_src` and `_dst`",
    page="""\
Old: `nisa.tensor_copy_dynamic_src(…)`

New: `nisa.tensor_copy` with `.ap(scalar_offset=…)`

Removed in 0.4; not translated yet.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
