"""Watchers see every allocation and instruction in order, and cost nothing when absent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neuroncore.errors import KernelError
from neuroncore.machine.observe import Watcher, watched_by, watching


class Recorder(Watcher):
    """Writes down what it sees, with the destination's content at that moment."""

    def __init__(self):
        self.seen = []
        self.events = []

    def allocated(self, storage):
        self.seen.append(("allocated", storage.shape))

    def will(self, event):
        self.events.append(event)
        self.seen.append(("will", event.call.record.name, event.views["dst"].array[0, 0].item()))

    def did(self, event):
        self.seen.append(("did", event.call.record.name, event.views["dst"].array[0, 0].item()))


@pytest.fixture
def recorder():
    return Recorder()


def test_events_come_in_order_and_around_the_instruction(make_world, nisa, recorder):
    world = make_world(watchers=[recorder])
    t = world.tile(np.zeros((4, 8)))

    for value in (1.0, 2.0):  # the second call is planned already
        nisa.memset(t, value)

    assert recorder.seen == [
        ("allocated", (4, 8)),
        ("will", "memset", 0), ("did", "memset", 1),
        ("will", "memset", 1), ("did", "memset", 2),
    ]  # fmt: skip


def test_an_event_tells_specs_attributes_place_and_name(make_world, nisa, recorder):
    world = make_world(watchers=[recorder])
    t = world.tile(np.zeros((4, 8)))

    nisa.tensor_tensor(t, t, t, "add", name="first")

    (event,) = recorder.events
    assert event.call.dst is t.spec
    assert event.call.op.name == "add"
    assert event.name == "first"
    assert Path(event.place.file).name == "test_observe.py"


def test_every_watcher_is_told(make_world, nisa):
    first, second = Recorder(), Recorder()
    world = make_world(watchers=[first, second])

    nisa.memset(world.tile(np.zeros((4, 8))), 1.0)

    assert first.seen == second.seen != []


def test_a_rejected_instruction_is_no_event(make_world, nisa, recorder):
    world = make_world(watchers=[recorder])
    t = world.tile(np.zeros((4, 8)))

    with pytest.raises(KernelError):
        nisa.tensor_copy(t, world.tile(np.zeros((4, 9))))

    assert recorder.events == []


def test_languages_give_their_cores_the_watchers_in_force(make_world, nisa, recorder):
    with watched_by(recorder):
        inside = make_world(watchers=watching())
    outside = make_world(watchers=watching())

    nisa.memset(outside.tile(np.zeros((4, 8))), 1.0)
    assert recorder.seen == []
    nisa.memset(inside.tile(np.zeros((4, 8))), 1.0)
    assert [what for what, *_ in recorder.seen] == ["allocated", "will", "did"]


def test_without_watchers_the_remembered_plan_is_the_same_object(make_world, nisa, recorder):
    """Watching changes neither what runs later unwatched nor what it costs."""
    plain, watched = make_world(), make_world(watchers=[recorder])
    t, u = plain.tile(np.zeros((5, 11))), watched.tile(np.zeros((5, 11)))
    others = set(plain.core.plans)  # shared by cores of one kind
    nisa.memset(t, 1.0)
    (key,) = set(plain.core.plans) - others
    before = plain.core.plans[key]

    nisa.memset(t, 2.0)
    assert plain.core.plans[key] is before

    nisa.memset(u, 3.0)
    nisa.memset(t, 4.0)
    assert (t.array[0, 0], u.array[0, 0]) == (4, 3)
