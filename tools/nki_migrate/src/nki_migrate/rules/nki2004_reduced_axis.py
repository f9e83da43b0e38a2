"""`tensor_reduce(axis=1)` means axis 1."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety
from nki_migrate.rules.arguments import is_device_call
from nki_migrate.rules.rule import Example, Rule, Site
from nki_migrate.rules.tiles import Allocation, allocation_of, argument


def _check(call: ast.Call, site: Site) -> Iterator[Finding]:
    if not is_device_call(call, site, "nisa.tensor_reduce"):
        return
    axis, source = argument(call, "axis", 3), argument(call, "data", 2)
    if not (isinstance(axis, ast.Constant) and axis.value == 1 and type(axis.value) is int):
        return
    data = allocation_of(source, site) if isinstance(source, ast.Name) else None
    if data is None or data.rank is None or data.rank < 3:
        return
    target = argument(call, "dst", 0)
    made = allocation_of(target, site) if isinstance(target, ast.Name) else None
    reduced = _reduced_axis(data, made, site)
    if reduced == 1:
        return
    last = data.rank - 1
    said = f"axis=1 meant the last axis in 0.2; from 0.3 on it is axis 1 of {data.rank}"
    if reduced == last:
        basis = ("dst has the shape of data without its last axis",)
        edits = [site.replace(axis, str(last))]
        yield site.finding("NKI2004", axis, said, edits=edits, basis=basis)
    else:
        yield site.finding("NKI2004", axis, f"{said}: which is meant?", safety=Safety.MANUAL)


def _reduced_axis(data: Allocation, dst: Allocation | None, site: Site) -> int | None:
    """The one axis, 1 or the last, that dst lacks (or has as 1); None if both would do."""
    if dst is None or dst.shape is None or data.shape is None:
        return None
    before, after = ([site.source(s) for s in t] for t in (data.shape, dst.shape))
    fits = [axis for axis in (1, len(before) - 1) if after in _without(before, axis)]
    return fits[0] if len(fits) == 1 else None


def _without(sizes: list[str], axis: int) -> tuple[list[str], list[str]]:
    rest = sizes[axis + 1 :]
    return [*sizes[:axis], *rest], [*sizes[:axis], "1", *rest]


_BAD = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def sums(x):
    data = nl.ndarray((128, 8, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=data, src=x)
    total = nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=total, op=nl.add, data=data, axis=1)
"""

RULE = Rule(
    id="NKI2004",
    step=("0.2", "0.3"),
    klass="b",
    safety=Safety.SAFE,
    title="`tensor_reduce(axis=1)` reduces axis 1, not the last",
    page="""\
On data of three or four dimensions 0.2 took `axis=1` for the last axis. The shape of the
destination shows which one was meant; where it fits both, you have to say. Code that this tool
wrote from 0.1 has the right axis already.

**Trap.** A kernel tuned until it was right under 0.2 is wrong under 0.3, without an error when the
two axes are of one size.
""",
    examples=(Example.of(_BAD, _BAD.replace("axis=1", "axis=2")),),
    nodes=(ast.Call,),
    check=_check,
    native=True,
)
