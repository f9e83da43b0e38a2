"""Loops ready to be played; a loop with nothing in it but a loop is one with it, where it can be.

Two such loops are one where every access goes on over them at one pace: an iteration of the outer
one moves it as far as all iterations of the inner one. Accesses that hold back no other may move
freely. One loop of many iterations repeats itself sooner than a few that have a few each.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from neuroncore.timeline.playing.sites import Site, Step


@dataclass(slots=True)
class Body:
    """A loop ready to be played."""

    variable: int
    """Where its value is."""
    trips: range
    """What its variable is in turn."""
    steps: list[Step | Body]
    sites: list[Site] = field(default_factory=list)
    """Those inside it, however deep."""

    @property
    def num_calls(self) -> int:
        """Calls of one execution, all iterations of it and of the loops inside counted."""
        inside = [step for step in self.steps if isinstance(step, Body)]
        own = len(self.sites) - sum(len(inner.sites) for inner in inside)
        return len(self.trips) * (own + sum(inner.num_calls for inner in inside))

    def ranges(self) -> dict[int, range]:
        """Its variable and the variables of the loops inside → their values."""
        inside = [step.ranges() for step in self.steps if isinstance(step, Body)]
        return {key: trips for found in inside for key, trips in found.items()} | {
            self.variable: self.trips
        }


def as_one(body: Body) -> Body:
    """The loop and the one that is all there is in it as one; itself where they are two."""
    inner = body.steps[0] if len(body.steps) == 1 else None
    if not isinstance(inner, Body):
        return body
    accesses = [access for site in inner.sites for access in site.accesses]
    paces = [_pace(body, inner, *map(a.step, (body.variable, inner.variable))) for a in accesses]
    known = [pace for pace in paces if pace is not None]
    if len(known) < len(paces):
        return body
    for access, pace in zip(accesses, known, strict=True):
        first = {body.variable: body.trips.start, inner.variable: inner.trips.start}
        access.replace(first, inner.variable, pace)
    trips = range(len(body.trips) * len(inner.trips))
    return Body(inner.variable, trips, inner.steps, inner.sites)


def _pace(body: Body, inner: Body, outer_step: int, inner_step: int) -> int | None:
    """Bytes that an access moves in each iteration of both; None where that is not always so."""
    around, inside = outer_step * body.trips.step, inner_step * inner.trips.step
    if len(inner.trips) == 1:
        return around
    return inside if len(body.trips) == 1 or around == inside * len(inner.trips) else None
