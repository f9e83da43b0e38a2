"""Sums in PSUM: where `+=` of a product adds to what lies there, and where it starts a sum.

TensorE's flags (`Storage.written`) say which elements hold a product or a sum of them; which others
something else has written, is kept here. What writes PSUM notes it: every instruction, and what is
done to elements without one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import TYPE_CHECKING

import numpy as np

from neuroncore.engines import Space
from neuroncore.memory import Shadow, View, is_whole, resolve_scalar
from nki_beta1._moved import find_places

if TYPE_CHECKING:
    from nki_beta1._emit import Core

Marks = Shadow | bool
"""Flags beside the elements of a storage, or one for all."""
Where = np.ndarray | bool
"""Which elements of a view, as bool in its shape."""

_PSUM = Space.psum


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
        storage.written_flags().put(view, False, chosen)
    marks = core.initialised.get(id(storage), False)
    if isinstance(marks, bool):
        if marks:
            return
        marks = core.initialised[id(storage)] = Shadow.beside(storage, False)
    marks.put(view, True, chosen)


def note_product(view: View, where: Where = True) -> None:
    """A product, or a sum of them, lies in the elements of `view` that `where` names."""
    view.storage.written_flags().put(view, True, None if where is True else np.asarray(where))


@contextmanager
def unnoted(core: Core, view: View) -> Iterator[None]:
    """While elements are put back: what is known of them stays as it is."""
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

    Otherwise TensorE's own flags say where it adds.
    """
    marks = core.initialised.get(id(view.storage), False)
    if isinstance(marks, bool):
        return marks
    if not marks.elements(_located(view), np.any).any():
        return False
    start(core, view)
    return True


def start(core: Core, view: View, where: Where = True) -> None:
    """Let sums start where nothing has written `view`, of the elements that `where` names."""
    view = _located(view)
    view.settle()
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
    """Whether a product lies in all of `view`, or in the elements that `where` names."""
    if view.spec.space is not _PSUM:
        return False
    written = view.storage.written
    if isinstance(written, bool):
        return written
    return bool(written.elements(_located(view))[where].all())


def pass_on(core: Core, view: View, copy: View) -> None:
    """What is known of `view` holds for a copy of it in a storage of its own."""
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


def _located(view: View) -> View:
    """`view` itself; one that a tile moves where it is now.

    Raises AccessError where the tile's number leaves the dimension.
    """
    if view.dynamic is None:
        return view
    find_places("nc_matmul", [view], (0,), {})
    found = resolve_scalar(view)
    assert found is not None
    return found
