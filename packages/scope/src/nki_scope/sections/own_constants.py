"""Constants of a timeline that are not the published ones."""

from __future__ import annotations

from neuroncore.timeline import Constants, Timeline, constants


def own_values(timeline: Timeline) -> dict[str, float]:
    """What it was played with beside the published constants of its target."""
    published = constants().at(timeline.target)
    return {name: v for name, v in timeline.values.items() if v != published[name]}


def constants_of(timeline: Timeline) -> Constants:
    """The constants that it was played with; the published ones on other targets."""
    values = constants()
    for name, value in own_values(timeline).items():
        values = values.but(name, timeline.target, value)
    return values
