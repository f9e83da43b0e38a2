"""How local_gather is given its indices."""

from __future__ import annotations

from typing import Any


def with_indices_of_groups(
    module: Any,
    src_buffer: Any,
    index: Any,
    num_elem_per_idx: int,
    num_valid_indices: int,
    output_shape: tuple[int, ...],
) -> Any:
    """The case counts groups of elements, the instruction counts elements."""
    elements = index * index.dtype.type(num_elem_per_idx)
    return module.nki_local_gather(
        src_buffer, elements, num_elem_per_idx, num_valid_indices, output_shape
    )
