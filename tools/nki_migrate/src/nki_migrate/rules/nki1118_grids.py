"""NKI1118: a launch grid becomes loops in the kernel."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Rule

__all__ = ["RULE"]

RULE = Rule(
    id="NKI1118",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="a launch grid becomes loops in the kernel",
    page="""\
Old: `kernel[rows // 128, cols // 512](a, b)`

New: `kernel(a, b)` and loops over both axes in the kernel

From 0.2 on the bracket is a number of cores (1 or 2); the old grid would silently name cores
that do not exist (trap T7). The extents are taken from the launches in view, written in the
kernel's parameters. `kernel[2]` stays.
""",
)
