"""NKI1199: removed instructions."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
nisa._tiled_offloaded_memcpy(x)
"""
_GOOD = """
# TODO(nki-migrate NKI1199): `nisa._tiled_offloaded_memcpy` has no counterpart that this tool writes yet
nisa._tiled_offloaded_memcpy(x)
"""  # noqa: E501

RULE = Rule(
    id="NKI1199",
    step=("0.1", "0.2"),
    klass="c",
    safety=Safety.MANUAL,
    title="removed instructions",
    page="""\
Old: `nisa.builtin_custom_op`, `nisa._…`

New: nothing

There is no replacement.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
