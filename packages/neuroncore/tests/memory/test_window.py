"""Where arrays lie."""

from __future__ import annotations

import numpy as np

from neuroncore.memory import address_of
from neuroncore.memory.window import INTERFACE, bytes_before


def test_an_address_is_that_of_the_first_element():
    array = np.arange(12.0).reshape(3, 4)

    for part in (array, array[1:, 2:], array[::-1], array.T):
        assert address_of(part) == part.ctypes.data
    assert bytes_before(array[1:, 2:], array) == 6 * array.itemsize


def test_the_names_of_numpys_interface_stay_interned():
    """Each name that NumPy gives is the one that is held: none comes and goes."""
    names = list(np.zeros((2, 3), np.float16)[:, 1:].__array_interface__)

    assert all(any(name is held for held in INTERFACE) for name in names)
