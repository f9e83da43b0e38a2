"""`.indirect`: free elements of every partition at offsets that a tile holds (gen4).

Offsets form a snake over groups of 16 partitions: offset i of a group is index[i % 16, i // 16]
of its rows, and holds for each of its partitions. (TensorE's groups of 32 are not modelled.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from neuroncore.enums import MemorySpace
from neuroncore.errors import AccessError
from neuroncore.memory.dynamic import dynamic_rows
from neuroncore.memory.storage import Dynamic, StridedView, ViewT
from neuroncore.spec import Indirection
from neuroncore.targets import GPSIMD_PARTITIONS

RULE = "NKI: NkiTensor.indirect"


def indirect_view(flat: ViewT, index: StridedView, count: int) -> ViewT:
    """(P, count) of a view (P, F): see View.indirect."""
    first = as_strided(flat.array, (flat.shape[0], count), (flat.array.strides[0], 0))
    dynamic = Dynamic(index, flat.spec.strides[1], flat.shape[1])
    kind = Indirection("free", 1, flat.spec.strides[1], index.spec)
    return flat.derive(first, flat.spec.start, dynamic=dynamic, indirect=kind)


def num_offsets(view: StridedView, index: StridedView, num_elem: int | None) -> int:
    """How many offsets of `index` a view is taken at; raises AccessError for an unfit index."""
    if not _is_index_of(view, index):
        raise AccessError(
            "the index of a tensor indirection does not fit",
            expected=f"integers of shape ({view.shape[0]}, K) in SBUF for a tensor on chip, a "
            f"multiple of {GPSIMD_PARTITIONS} partitions",
            got=f"{index!r} for {view!r}"[:160], operand="index", position=0, rule=RULE,
        )  # fmt: skip
    index.initialize()
    held, count = GPSIMD_PARTITIONS * index.shape[1], index.size if num_elem is None else num_elem
    if not isinstance(count, (int, np.integer)) or not 1 <= count <= held:
        raise AccessError(
            f"{count} offsets",
            expected=f"num_elem of 1 to {held}: {GPSIMD_PARTITIONS} of each column",
            got=f"num_elem={num_elem}, index {index.shape}", operand="num_elem", position=1,
            rule=RULE,
        )  # fmt: skip
    return int(count)


def _is_index_of(view: StridedView, index: StridedView) -> bool:
    if not hasattr(index, "spec") or not view.spec.space.on_chip:
        return False
    integers = index.spec.space is MemorySpace.sbuf and index.spec.dtype.is_integer
    rows = view.shape[0]
    return integers and index.ndim == 2 and index.shape[0] == rows and rows % GPSIMD_PARTITIONS == 0


def window_of(view: StridedView) -> np.ndarray:
    """All free elements of the partitions, (P, F), as stored in memory."""
    dynamic = view.dynamic
    assert dynamic is not None
    array = view.array
    return as_strided(
        array, (len(array), dynamic.limit), (array.strides[0], dynamic.stride * array.itemsize)
    )


def offsets_of(view: StridedView) -> np.ndarray:
    """(P, num_elem) offsets; raises AccessError for one outside the partition."""
    dynamic = view.dynamic
    assert dynamic is not None
    groups = dynamic.index.array.astype(np.int64).reshape(
        -1, GPSIMD_PARTITIONS, dynamic.index.shape[1]
    )
    snakes = groups.transpose(0, 2, 1).reshape(len(groups), -1)[:, : view.shape[1]]
    for offset in (snakes.min(), snakes.max()):
        if not 0 <= offset < dynamic.limit:
            raise AccessError(
                f"an offset is {offset}", expected=f"0 to {dynamic.limit - 1}", got=str(offset),
                rule=RULE,
            )  # fmt: skip
    return np.repeat(snakes, GPSIMD_PARTITIONS, axis=0)


def named_elements(view: StridedView) -> tuple[np.ndarray, np.ndarray]:
    """Numbers in the storage of the elements that an index names now, one by one or row by row, in
    the view's shape; which of its rows are in bounds, (P,).

    Raises AccessError for an offset outside its partition, and as dynamic_rows.
    """
    moved = view.spec.indirect
    assert moved is not None
    if moved.kind != "free":
        return dynamic_rows(view)
    rows = np.arange(len(view.array))[:, None] * view.spec.strides[0]
    found = view.offset + rows + offsets_of(view) * moved.stride
    return found, np.ones(len(found), np.bool_)


def scatter(view: StridedView, values: Any) -> None:
    """Write (P, num_elem) to their offsets; raises AccessError where two share one."""
    offsets = offsets_of(view)
    ordered = np.sort(offsets, axis=1)
    if (ordered[:, 1:] == ordered[:, :-1]).any():
        raise AccessError(
            "two results go to one offset", expected="offsets that differ", hint="no document says "
            "which of them stays", rule=RULE,
        )  # fmt: skip
    np.put_along_axis(window_of(view), offsets, values, axis=1)


def gathered(view: StridedView) -> np.ndarray:
    """A copy of the elements that the view names now."""
    return np.take_along_axis(window_of(view), offsets_of(view), axis=1)
