"""Sums in PSUM: where `+=` of a product adds to what lies there, and where it starts a sum.

TensorE's flags say which elements it has written; which others something else has, is kept here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neuroncore.engines import Space
from neuroncore.memory import View, window

if TYPE_CHECKING:
    from nki_beta1._emit import Core

Marks = np.ndarray | bool
"""One flag per element, or one for all."""

_PSUM = Space.psum


def note_written(core: Core, view: View, where: Marks = True) -> None:
    """Something other than TensorE has written the elements of `view` that `where` names."""
    number = id(view.storage)
    marks = core.initialised.get(number, False)
    if marks is True or view.spec.space is not _PSUM:
        return
    if not _is_in_place(view) or (where is True and view.array.size == view.storage.flat.size):
        core.initialised[number] = True
        return
    if isinstance(marks, bool):
        marks = core.initialised[number] = np.zeros(view.storage.flat.shape, np.bool_)
    _part(marks, view)[...] |= where


def adds(core: Core, view: View) -> bool:
    """Whether a product is added to all of `view`: it holds 0 where nothing has written it.

    Otherwise TensorE's own flags say where it adds.
    """
    marks = core.initialised.get(id(view.storage), False)
    if isinstance(marks, bool):
        return marks
    if _is_in_place(view) and not _part(marks, view).any():
        return False
    start(core, view)
    return True


def start(core: Core, view: View, where: Marks = True) -> None:
    """Let sums start where nothing has written `view`, of the elements that `where` names."""
    if not _is_in_place(view):
        return
    view.settle()
    marks = core.initialised.get(id(view.storage), False)
    held = np.zeros(view.shape, np.bool_)
    held |= marks if isinstance(marks, bool) else _part(marks, view)
    held |= _by_tensor_engine(view)
    new = ~held & where
    if new.any():
        view.array[new] = 0
        note_written(core, view, new)
        core.moved(view, at=new)


def is_product(view: View) -> bool:
    """Whether TensorE has written all of `view`."""
    return view.spec.space is _PSUM and bool(np.all(_by_tensor_engine(view)))


def pass_on(core: Core, view: View, copy: View) -> None:
    """What is known of `view` holds for a copy of it in a storage of its own."""
    if view.spec.space is not _PSUM:
        return
    copy.storage.written = is_product(view)
    if not copy.storage.written:
        note_written(core, copy)


def _by_tensor_engine(view: View) -> Marks:
    storage = view.storage
    if isinstance(storage.written, bool) or not _is_in_place(view):
        return storage.written is True
    return _part(storage.written_bits(), view)


def _is_in_place(view: View) -> bool:
    """Whether the elements of a view are elements of its storage, known now."""
    return view.dynamic is None and view.array.itemsize == view.storage.flat.itemsize


def _part(marks: np.ndarray, view: View) -> np.ndarray:
    return window(marks, view.offset, view.shape, view.spec.strides)
