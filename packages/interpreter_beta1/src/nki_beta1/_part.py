"""A view of a tile whose spec is already known."""

from __future__ import annotations

import numpy as np

from neuroncore.memory import View
from neuroncore.spec import Spec


def part(base: View, array: np.ndarray, spec: Spec) -> View:
    """What `base.derive` gives for `array`, where the spec has been found before."""
    view = _new(base.__class__)
    view.array, view.spec, view.storage = array, spec, base.storage
    view.core, view.dynamic = base.core, base.dynamic
    return view


_new = View.__new__
