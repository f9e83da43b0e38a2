"""What watchers see of calls that repeat: what they saw of the first one."""

from __future__ import annotations

import numpy as np

from neuroncore.machine.observe import Watcher, watched_by
from neuroncore.program import Recorder, execute_program
from nki_beta1 import nki, nl


class Seen(Watcher):
    """Lines of what happens, tensors by their number; a fresh tensor is one without a write."""

    def __init__(self):
        self.lines, self.places = [], []

    def allocated(self, storage):
        storage.notes[self] = len(self.places)
        self.places.append(storage.place)
        self.lines.append(f"{storage.notes[self]} {'new' if storage.fresh else 'given'}")

    def will(self, event):
        views = [v for v in event.views.values() if hasattr(v, "storage")]
        operands = " ".join(str(v.storage.notes[self]) for v in views)
        self.lines.append(f"{event.call.record.name} {operands}")


@nki.jit
def product_and_zeros(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    product = nl.multiply(tile, tile)
    zeros = nl.zeros(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nl.store(out, value=nl.add(product, zeros))
    return out


def seen(x):
    watcher = Seen()
    with watched_by(watcher):
        result = product_and_zeros(x)
    assert np.array_equal(result, x * x)
    return watcher


EXPECTED = [
    "0 given", "1 new", "2 new", "dma_copy 2 0", "3 new", "4 new", "tensor_tensor 4 2 2",
    "memset 3", "5 new", "tensor_tensor 5 4 3", "dma_copy 1 5",
]  # fmt: skip


def test_a_watcher_sees_tensors_and_instructions_in_the_same_order_again():
    x = np.arange(32, dtype=np.float32).reshape(4, 8)

    first, second, third = seen(x), seen(x), seen(x)

    assert first.lines == second.lines == third.lines == EXPECTED


def test_a_tensor_is_said_to_be_made_where_its_call_stands_again():
    x = np.arange(32, dtype=np.float32).reshape(4, 8)

    first, second = seen(x), seen(x)

    assert first.places == second.places
    out, *made = [place.line for place in first.places if place is not None]
    assert [line - out for line in made] == [1, 3, 2, 4]


@nki.jit
def seen_in_other_ways(x):
    out = nl.ndarray((4, 4), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    doubled = nl.add(tile, tile)
    reshaped = nl.add(doubled.reshape((4, 2, 4)), 1.0)
    whole = nl.add(doubled, 1.0)
    halves = nl.subtract(whole[:, 4:8], whole[:, 0:4])
    part = nl.add(halves, reshaped.reshape((4, 8))[:, 0:4])
    nl.store(out, value=part)
    return out


def test_a_recorder_distinguishes_views_of_one_tensor():
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    recorder = Recorder(seen_in_other_ways)

    with watched_by(recorder):
        result = seen_in_other_ways(x)

    assert np.array_equal(result, 2 * x[:, 4:] + 1)
    (ran,) = execute_program(recorder.program(), [x])
    assert np.array_equal(ran, result)
