"""Plans of tiles for kernels that attend to a context in cache blocks.

Every context fills whole tiles, so that no key of a tile is masked and their order inside a tile
does not matter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

STEPS = 2  # tiles that a dynamic loop takes at a time


def prefill_static(module: Any, **tensors: Any) -> Any:
    """One sequence of new tokens after a context."""
    return _prefill(module.flash_paged_attn_blockspase_prefill_static, tensors)


def prefill_dynamic(module: Any, **tensors: Any) -> Any:
    """The same, with a loop whose count is an argument."""
    more = {"num_dynamic_loop_steps": None, "dynamic_loop_unroll_factor": STEPS}
    return _prefill(module.flash_paged_attn_blockspase_prefill_dynamic, tensors, **more)


def decode_static(module: Any, **tensors: Any) -> Any:
    """One new token for each of several contexts."""
    return _decode(module.flash_paged_attn_blockspase_decode_static, tensors)


def decode_dynamic(module: Any, **tensors: Any) -> Any:
    """The same, with a loop whose count is an argument."""
    more = {"num_dynamic_loop_steps": None, "dynamic_loop_unroll_factor": STEPS}
    return _decode(module.flash_paged_attn_blockspase_decode_dynamic, tensors, **more)


def _prefill(kernel: Any, tensors: dict[str, Any], **more: Any) -> Any:
    tables = _tables(tensors)
    count = tensors["query"].shape[2]
    plan = {
        "tile_q_indices": np.tile(np.arange(count, dtype=np.int32), (len(tables), 1)),
        "tile_masks": np.ones((len(tables), count, tensors["tile"]), np.uint8),
        "active_mask": np.tril(np.ones((count, count), np.uint8)),
    }
    return _launch(kernel, tensors, tables, plan, more)


def _decode(kernel: Any, tensors: dict[str, Any], **more: Any) -> Any:
    tables = _tables(tensors)
    count = tensors["query"].shape[2]
    each = len(tables) // count
    plan = {
        "tile_q_indices": np.repeat(np.arange(count, dtype=np.int32), each)[:, None],
        "tile_masks": np.ones((128, len(tables), tensors["tile"] // 128), np.uint8),
        "active_mask": np.eye(count, dtype=np.uint8),
        "last_tile_indices": np.arange(each - 1, len(tables), each, dtype=np.int32)[:, None],
    }
    return _launch(kernel, tensors, tables, plan, more)


def _tables(tensors: dict[str, Any]) -> Any:
    """Rows of cache blocks, one row per tile, in the order that `order` sorts into."""
    blocks = np.argsort(tensors["order"], kind="stable").astype(np.int32)
    return blocks.reshape(-1, tensors["tile"] // tensors["key_cache"].shape[2])


def _launch(
    kernel: Any, tensors: dict[str, Any], tables: Any, plan: dict[str, Any], more: dict[str, Any]
) -> Any:
    names = ("query", "key", "value", "key_cache", "value_cache")
    if more:
        more["num_dynamic_loop_steps"] = np.full((1, 1), len(tables) // STEPS, np.int32)
    given = {name: tensors[name] for name in names} | {"tile_block_tables": tables} | plan | more
    return kernel[1, tensors["key_cache"].shape[1]](**given)
