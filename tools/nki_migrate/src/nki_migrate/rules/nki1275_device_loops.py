"""NKI1275: loops whose bound the device computes."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
count = nl.load(numbers[0:1, 0:1])
for i in nl.sequential_range(count):
    pass
"""
_GOOD = """
count = nl.ndarray((1, 1), dtype=numbers.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=count, src=numbers[0:1, 0:1])
# TODO(nki-migrate NKI1275): a loop bound that the device computes: a register, and a loop of the device
for i in nl.sequential_range(count):
    pass
"""  # noqa: E501

RULE = Rule(
    id="NKI1275",
    step=("0.1", "0.2"),
    klass="c",
    safety=Safety.MANUAL,
    title="loops whose bound the device computes",
    page="""\
Old: `for i in nl.sequential_range(count)` with a loaded `count`

New: `bound = nisa.register_alloc()`, `nisa.register_load(bound, count)`, then
`for i in nl.dynamic_range(bound)` in 0.3 to 0.5, `nl.fori_loop(0, bound, body)` in 0.6; by hand

The body may not rebind names that are used outside, and its index is a register (NKI5001).
""",
    examples=(Example.kernel(_BAD, _GOOD, parameters="x, numbers"),),
)
