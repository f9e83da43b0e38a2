"""Variants: the time of a kernel with other costs, as written and as the toolchain makes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from neuroncore.errors import KernelError
from neuroncore.timeline import Timeline, estimate
from nki_scope.sections.budget import NOT_PLAYED, Budget
from nki_scope.sections.micro_op_tables import rules
from nki_scope.sections.own_constants import constants_of

FACTORS = (0.0, 0.5, 2.0)


def what_if_section(
    timeline: Timeline, known: Mapping[str, float], budget: Budget
) -> list[dict[str, Any]]:
    """Changes with the total that the model gave for each, or the reason why it gave none.

    `known`: totals of other modes. The page plays changes of targets and of all other costs itself.
    Costs that change nothing are left out.
    """
    return [*_modes(timeline, known, budget), *_costs(timeline, budget)]


def _modes(
    timeline: Timeline, known: Mapping[str, float], budget: Budget
) -> Iterator[dict[str, Any]]:
    for mode in ("as_written", "device"):
        if mode != timeline.mode:
            row = {"kind": "mode", "name": mode, "to": mode}
            total = known.get(mode)
            yield row | (_played(timeline, budget, mode=mode) if total is None
                         else {"totalNs": total})  # fmt: skip


def _costs(timeline: Timeline, budget: Budget) -> Iterator[dict[str, Any]]:
    values = constants_of(timeline)
    own = values.at(timeline.target)
    names = [name for name, constant in rules()["constants"].items() if constant["work"]]
    for name, value in ((name, own[name]) for name in names):
        for factor in FACTORS:
            changed = values.but(name, timeline.target, value * factor)
            played = _played(timeline, budget, constants=changed)
            if played.get("totalNs") != timeline.total_ns:
                yield {"kind": "cost", "name": name, "to": f"{value:g} x {factor:g}"} | played


def _played(timeline: Timeline, budget: Budget, **changes: Any) -> dict[str, Any]:
    """The total with these arguments of estimate."""
    if not budget.takes(timeline):
        return {"reason": NOT_PLAYED}
    given: dict[str, Any] = {
        "mode": timeline.mode,
        "constants": constants_of(timeline),
        "verified": True,
    }
    try:
        return {"totalNs": estimate(timeline.source, **given | changes).total_ns}
    except KernelError as reason:
        return {"reason": f"{type(reason).__name__}: {reason.what}"}
