"""Which PSUM locations a matmul has written: what `accumulate` decides from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from neuroncore.enums import Engine, MemorySpace
from neuroncore.instructions._record import Call
from neuroncore.memory import View, is_whole, written_flags


def written_part(dst: View) -> np.ndarray | bool:
    """Whether matmuls have written dst: True, False, or a flag per element."""
    state = dst.storage.written
    if isinstance(state, bool):
        return state
    bits = written_flags(dst.storage).elements(dst)
    return True if bits.all() else bits if bits.any() else False


def mark_written(dst: View) -> None:
    """All elements of dst now hold a matmul's result."""
    storage = dst.storage
    if storage.written is True:
        return
    if is_whole(dst):
        storage.written = True
    else:
        written_flags(storage).put(dst, True)


def forgetting(call: Call, execute: Callable[..., Any]) -> Callable[..., Any]:
    """`execute`, after which PSUM that another engine than TensorE wrote holds no matmul's result.

    For Options.psum_tracking "write"; what is not written keeps its flag.
    """
    names = list(call.specs)
    places = [names.index(n) for n in call.record.outputs if _in_psum(call, n)]
    if not places or call.engine is Engine.tensor:
        return execute

    def execute_and_forget(*views: Any) -> None:
        chosen = call.record.chooses(call, dict(zip(names, views, strict=True)))
        execute(*views)
        for i in places:
            storage = views[i].storage
            if storage.written is not False:
                written_flags(storage).put(views[i], False, chosen if i == places[0] else None)

    return execute_and_forget


def _in_psum(call: Call, name: str) -> bool:
    return name in call.tiles and call.tiles[name].space is MemorySpace.psum
