"""Variants: the time of a kernel on other targets, with other costs, as the toolchain makes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from neuroncore.errors import KernelError
from neuroncore.targets import TARGETS
from neuroncore.timeline import Timeline, estimate, rules
from nki_scope.sections.own_constants import constants_of

FACTORS = (0.0, 0.5, 2.0)
MOST_PLAYED = 20_000
"""Micro-ops of a kernel beyond which its page alone plays it with changes."""


def what_if_section(timeline: Timeline) -> list[dict[str, Any]]:
    """Changes with the total that the model gave for each, or the reason why it gave none.

    The page plays changes of targets and of all other costs itself. Costs that change nothing are
    left out.
    """
    if timeline.num_ops > MOST_PLAYED:
        return []
    return [*_machines(timeline), *_costs(timeline)]


def _machines(timeline: Timeline) -> Iterator[dict[str, Any]]:
    for target in TARGETS:
        if target != timeline.target:
            yield {"kind": "target", "name": target, "to": target} | _played(
                timeline, target=target
            )
    for mode in ("as_written", "device"):
        if mode != timeline.mode:
            yield {"kind": "mode", "name": mode, "to": mode} | _played(timeline, mode=mode)


def _costs(timeline: Timeline) -> Iterator[dict[str, Any]]:
    values = constants_of(timeline)
    own = values.at(timeline.target)
    names = [name for name, constant in rules()["constants"].items() if constant["work"]]
    for name, value in ((name, own[name]) for name in names):
        for factor in FACTORS:
            changed = values.but(name, timeline.target, value * factor)
            played = _played(timeline, constants=changed, verified=True)
            if played.get("totalNs") != timeline.total_ns:
                yield {"kind": "cost", "name": name, "to": f"{value:g} x {factor:g}"} | played


def _played(timeline: Timeline, **changes: Any) -> dict[str, Any]:
    """The total with these arguments of estimate."""
    try:
        arguments: dict[str, Any] = {
            "mode": timeline.mode, "constants": constants_of(timeline), **changes
        }  # fmt: skip
        return {"totalNs": estimate(timeline.source, **arguments).total_ns}
    except KernelError as reason:
        return {"reason": f"{type(reason).__name__}: {reason.what}"}
