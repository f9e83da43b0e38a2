"""Enumeration of the programs that transform steps reach."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf

from neuroncore.machine.garbage_collection import no_collection
from nkigym.tile_rewrites.graph import Node, RewriteGraph

Progress = Callable[[int, int], None]
"""Told, now and then, of the programs found and the steps taken."""

TOLD_EVERY = 4096
"""Programs between two messages of progress."""


@dataclass(frozen=True, slots=True)
class Enumeration:
    """The programs with the number of steps that lead to each, and how many steps were taken."""

    depths: Mapping[Node, int]
    transitions: int
    complete: bool = True


def exhaust(
    space: RewriteGraph,
    reduced: bool = False,
    progress: Progress | None = None,
    limit: float = inf,
) -> Enumeration:
    """Every program of the space, breadth first; every step of every one is taken.

    `reduced` leaves out steps that are known to lead where another order of the same steps leads;
    the programs are the same, the transitions fewer. From `limit` programs on, no more are looked
    for, and what was found is not complete.
    """
    with paused_collection():
        return (_reduced if reduced else _all)(space, progress or _silent, limit)


def _silent(programs: int, transitions: int) -> None:
    """Report nothing."""


def _all(space: RewriteGraph, progress: Progress, limit: float) -> Enumeration:
    depths = {space.root: 0}
    todo = [space.root]
    transitions = 0
    for done, node in enumerate(todo):
        if len(todo) >= limit:
            return Enumeration(depths, transitions, complete=False)
        depth = depths[node] + 1
        for child in space.children(node):
            transitions += 1
            if child not in depths:
                depths[child] = depth
                todo.append(child)
        if done % TOLD_EVERY == 0:
            progress(len(todo), transitions)
    return Enumeration(depths, transitions)


def _reduced(space: RewriteGraph, progress: Progress, limit: float) -> Enumeration:
    """Sleep sets [Godefroid 1996], a bit for each part.

    A part sleeps at a program when its steps were taken before a step that is independent of them:
    what they lead to from here is found there. Where a program is met again with fewer parts
    asleep, the steps of the awoken components are taken.
    """
    depths = {space.root: 0}
    asleep = {space.root: 0}
    every = (1 << len(space.root)) - 1
    todo = deque([(space.root, 0, every)])
    transitions = 0
    while todo:
        if len(depths) >= limit:
            return Enumeration(depths, transitions, complete=False)
        node, sleeping, chosen = todo.popleft()
        for at in range(len(node)):
            if not chosen >> at & 1:
                continue
            there = sleeping & space.independent[at]
            for child in space.children(node, (at,)):
                transitions += 1
                if transitions % TOLD_EVERY == 0:
                    progress(len(depths), transitions)
                before = asleep.get(child)
                if before is None:
                    depths[child] = depths[node] + 1
                    asleep[child] = there
                    todo.append((child, there, every & ~there))
                elif before & ~there:
                    asleep[child] = before & there
                    todo.append((child, before & there, before & ~there))
            sleeping |= 1 << at
    return Enumeration(depths, transitions)


# -- garbage collection ----------------------------------------------------------------------------


@contextmanager
def paused_collection() -> Iterator[None]:
    """No garbage collection inside the block, and none of its objects counts as young afterwards.

    A search keeps every part that it has met; going through them once it ends takes as long as
    half the search. Freezing and thawing makes them old without a look (CPython's gc module);
    objects that a caller has frozen stay frozen.
    """
    with no_collection():
        yield
        if not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
