"""NKI1117: kernels that write to an argument."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
nl.store(out, value=nl.load(x))
"""
_GOOD = """
# TODO(nki-migrate NKI1117): `out` is a parameter: allocate and return it here, and change the callers
nl.store(out, value=nl.load(x))
"""  # noqa: E501

RULE = Rule(
    id="NKI1117",
    step=("0.1", "0.2"),
    klass="c",
    safety=Safety.MANUAL,
    title="kernels return what they make instead of writing to an argument",
    page="""\
Old: `def kernel(x, out): … nl.store(out, value=…)` without a `return` (SDK 2.20)

New: allocate the tensor in `nl.shared_hbm`, return it, drop the parameter, change the callers;
by hand

A signature is not changed by this tool. A parameter that 0.1 has marked as mutable, and that every
`return` has, stays as it is: the store and the `return` say the same in later versions (NKI1105).
""",
    examples=(Example.kernel(_BAD, _GOOD, parameters="x, out"),),
)
