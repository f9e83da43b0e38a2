"""Accumulation in PSUM: where `+=` of a product adds to the present content, where it starts a sum.

TensorE's flags (`Storage.written`) mark elements with a product or a sum of products; the marks
here are elements that other engines have written. Every write to PSUM updates them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy

import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.memory import Shadow, View, is_whole, resolve_scalar, written_flags
from nki_beta1.execution.core import Core, Marks
from nki_beta1.execution.indirection import check_indirect

Where = np.ndarray | bool
"""Which elements of a view, as bool in its shape."""

_PSUM = MemorySpace.psum


def note_written(core: Core, view: View, where: Where = True) -> None:
    """Something other than TensorE has written the elements of `view` that `where` names."""
    storage = view.storage
    if view.spec.space is not _PSUM:
        return
    if where is True and is_whole(view):
        core.initialised[id(storage)], storage.written = True, False
        return
    chosen = None if where is True else np.asarray(where)
    if storage.written is not False:
        written_flags(storage).put(view, False, chosen)
    marks = core.initialised.get(id(storage), False)
    if isinstance(marks, bool):
        if marks:
            return
        marks = core.initialised[id(storage)] = Shadow.beside(storage, False)
    marks.put(view, True, chosen)


def note_product(view: View, where: Where = True) -> None:
    """Mark the elements of `view` that `where` names as a product, or a sum of products."""
    written_flags(view.storage).put(view, True, None if where is True else np.asarray(where))


@contextmanager
def preserved_marks(core: Core, view: View) -> Iterator[None]:
    """Keep the marks of a view while its elements are written back."""
    storage = view.storage
    if view.spec.space is not _PSUM:
        yield
        return
    marks, written = core.initialised.get(id(storage), False), storage.written
    kept = deepcopy((marks, written))
    yield
    core.initialised[id(storage)], storage.written = kept


def adds(core: Core, view: View) -> bool:
    """Whether a product is added to all of `view`: it holds 0 where nothing has written it.

    Otherwise TensorE's own flags decide where it adds.
    """
    marks = core.initialised.get(id(view.storage), False)
    if isinstance(marks, bool):
        return marks
    if not marks.elements(_resolved(view), np.any).any():
        return False
    start(core, view)
    return True


def start(core: Core, view: View, where: Where = True) -> None:
    """Start sums with 0 in the elements of `view`, named by `where`, that nothing has written."""
    view = _resolved(view)
    view.initialize()
    others = core.initialised.get(id(view.storage), False)
    held = np.zeros(view.shape, np.bool_)
    for marks in (others, view.storage.written):
        held |= marks if isinstance(marks, bool) else marks.elements(view, np.any)
    new = ~held & where
    if new.any():
        view.array[new] = 0
        note_written(core, view, new)
        core.moved(view, at=new)


def is_product(view: View, where: Where = True) -> bool:
    """Whether all elements of `view`, or those named by `where`, are products."""
    if view.spec.space is not _PSUM:
        return False
    written = view.storage.written
    if isinstance(written, bool):
        return written
    return bool(written.elements(_resolved(view))[where].all())


def copy_marks(core: Core, view: View, copy: View) -> None:
    """Copy the marks of `view` to a copy of it in a storage of its own."""
    if view.spec.space is not _PSUM:
        return
    copy.storage.written = _beside(copy, view, view.storage.written)
    others = core.initialised.get(id(view.storage), False)
    core.initialised[id(copy.storage)] = _beside(copy, view, others)


def _beside(copy: View, view: View, marks: Marks) -> Marks:
    """The marks of `view`, for a copy of it."""
    if isinstance(marks, bool):
        return marks
    found = Shadow.beside(copy.storage, False)
    found.put(copy, True, marks.elements(view, np.any))
    return found


def _resolved(view: View) -> View:
    """`view` itself; one that a tile moves where it is now.

    Raises AccessError where the tile's number leaves the dimension.
    """
    if view.dynamic is None:
        return view
    check_indirect("nc_matmul", [view], (0,), {})
    found = resolve_scalar(view)
    assert found is not None
    return found
