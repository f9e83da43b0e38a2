"""nl.gather_flattened and nl.atomic_rmw: elements and rows that an index tile picks."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuroncore.alu import ALU_OPS, alu_op
from neuroncore.enums import MemorySpace
from neuroncore.errors import (
    AccessError,
    AttributeValueError,
    DTypeError,
)
from neuroncore.memory import View
from nki_beta1.access.access import Access
from nki_beta1.call import elementwise
from nki_beta1.call.apply import apply, cut, not_rectangular
from nki_beta1.call.assignment import fit
from nki_beta1.execution.core import core_of
from nki_beta1.execution.emission import run
from nki_beta1.index.mask import Region, region_of
from nki_beta1.launch.results import immutable
from nki_beta1.values.attributes import nl_function
from nki_dtypes import uint32


@nl_function
def gather_flattened(data: Any, indices: Any, *, mask: Any = None, dtype: Any = None) -> Any:
    """result[p, i…] = data[p].flat[indices[p, i…]], partition by partition, on GpSimdE.

    data (P, F…), indices (P, I…) uint32; the result has the shape of indices; what a mask excludes
    is neither read nor written.
    Raises DTypeError for other indices, AccessError for an index outside data's free elements.
    """
    core_of("gather_flattened").flush()
    if elementwise.dtype_of(indices) is not uint32:
        raise DTypeError(
            f"indices are {elementwise.dtype_of(indices)}",
            expected="uint32",
            operand="indices",
            instruction="nl.gather_flattened",
            rule="NKI 0.1: gather_flattened",
        )
    picks = elementwise.to_sbuf(indices)
    region = region_of(mask, picks.shape)
    if region is not None:
        picks = _selected(picks, region)
    found = apply("nc_n_gather", {"data": elementwise.to_sbuf(data), "indices": picks}, {},
                  over="data")  # fmt: skip
    return found if dtype is None and region is None else elementwise.copy(found, dtype, mask)


def _selected(indices: View, region: Region) -> View:
    """The indices inside a mask, and 0 where they are not read."""
    if region.inside is not None:
        raise not_rectangular("nl.gather_flattened", region)
    tile = indices.core.allocate(indices.shape, uint32, MemorySpace.sbuf)
    run("memset", {"dst": tile, "value": 0}, {})
    if not region.is_empty:
        run("tensor_copy", {"dst": region.of(tile), "src": region.of(indices)}, {})
    return tile


@nl_function
def atomic_rmw(dst: Any, value: Any, op: Any, *, mask: Any = None) -> None:
    """dst = dst + value for rows of an HBM tensor that an index tile names, one DMA.

    Rows may be named several times; every value counts. Raises AccessError where dst is not
    indexed with a tile, AttributeValueError for another operation than np.add.
    """
    core = core_of("atomic_rmw")
    core.flush()
    if alu_op(op) is not ALU_OPS["add"]:
        raise AttributeValueError(
            f"cannot do {alu_op(op).name}",
            expected="op=np.add",
            operand="op",
            instruction="nl.atomic_rmw",
            rule=_RULE,
        )
    region = region_of(mask, dst.shape)
    if region is not None and region.inside is not None:
        raise not_rectangular("nl.atomic_rmw", region)
    if region is not None and region.is_empty:
        return
    target = _rows(dst, region)
    addend = _addend(value, dst, target)
    try:
        run("dma_copy", {"dst": target, "src": addend if region is None else region.of(addend)},
            {"dst_rmw_op": "add"})  # fmt: skip
    except AccessError as wrong:
        wrong.instruction = wrong.instruction and "nl.atomic_rmw"
        raise


def _rows(dst: Any, region: Region | None) -> View:
    """The rows of dst that its index tile names. Raises AccessError, ImmutableError."""
    target = dst.of(region) if isinstance(dst, Access) else dst
    if not isinstance(target, View) or target.dynamic is None:
        raise AccessError(
            "dst is not indexed with a tile",
            expected="rows named by an index tile in SBUF: t[rows, nl.arange(F)[None, :]]",
            got=f"shape {dst.shape}",
            operand="dst",
            instruction="nl.atomic_rmw",
            rule=_RULE,
        )
    if not target.spec.mutable:
        raise immutable(dst, "nl.atomic_rmw")
    return target


_RULE = "NKI 0.1: atomic_rmw"


def _addend(value: Any, dst: Any, target: View) -> View:
    """The value as an SBUF tile of dst's shape and dtype."""
    kind = target.spec.dtype
    if isinstance(value, (int, float, np.number)):
        tile = target.core.allocate(dst.shape, kind, MemorySpace.sbuf)
        run("memset", {"dst": tile, "value": value}, {})
        return tile
    tile = fit(cut(value, None), dst.shape)
    return tile if tile.spec.dtype is kind else elementwise.copy(tile, kind)
