"""Entries beside the memory of a tensor, and windows of which all are known to be set."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest

from neuroncore.enums import MemorySpace
from neuroncore.machine.core import NeuronCore
from neuroncore.memory import Shadow
from nki_dtypes import float32

CHANGES = {
    "put": lambda flags, view, value: flags.put(view, value),
    "put at some": lambda flags, view, value: flags.put(view, value, np.eye(2, dtype=bool)),
    "set": lambda flags, view, value: flags.set(view, value, np.eye(2, dtype=bool)),
}


@pytest.fixture
def view():
    return NeuronCore().allocate((2, 4), float32, MemorySpace.psum)[:, 0:2]


@pytest.mark.parametrize("change", CHANGES)
def test_a_cleared_flag_ends_what_is_known_of_windows(view, change):
    flags = Shadow.beside(view.storage, True)
    flags.filled.add(view.spec)

    CHANGES[change](flags, view, True)
    assert flags.filled == {view.spec}
    CHANGES[change](flags, view, False)
    found = flags.of(view)
    assert found is not None and not flags.filled and not found.diagonal().any()


def test_a_deep_copy_has_entries_of_its_own_and_the_same_specs(view):
    flags = Shadow.beside(view.storage, True)
    flags.filled.add(view.spec)

    copy = deepcopy(flags)
    flags.put(view, False)

    found = copy.of(view)
    assert found is not None and found.all() and copy.filled == {view.spec}
