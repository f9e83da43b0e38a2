"""`tensor_reduce(axis=1)` means axis 1."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding, Safety
from nki_migrate.rules.arguments import is_device_call
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site
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


HOOKS = Hooks(nodes=(ast.Call,), check=_check)
