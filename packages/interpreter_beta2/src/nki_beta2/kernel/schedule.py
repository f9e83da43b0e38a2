"""`kernel.with_schedule(edges)`: instructions that run after others, by name.

Instructions run in program order here: an edge that agrees with it changes no value, others are
not supported. Watchers that reorder instructions (a recording for time, a token plan) receive each
edge, as for `depends_on`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from neuroncore.errors import AttributeValueError, LaunchError, Place, SignatureError
from neuroncore.machine.launch import RUNNING
from neuroncore.machine.observe import Event, Watcher

Edges = Mapping[str, tuple[str, ...]]
"""An instruction's name → the names of the instructions that it runs after."""

RULE = "NKI: with_schedule"
_FORM = '[("after", "before"), ("last", ["first", "second"])]'


def edges_of(given: Any) -> dict[str, tuple[str, ...]]:
    """Pairs of a name and the name or names that it runs after. Raises SignatureError."""
    found: dict[str, tuple[str, ...]] = {}
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise _unread(given)
    for pair in given:
        match pair:
            case [str(after), str(before)]:
                names: tuple[Any, ...] = (before,)
            case [str(after), [*befores]] if befores and all(type(b) is str for b in befores):
                names = tuple(befores)
            case _:
                raise _unread(pair)
        if after in names:
            raise AttributeValueError(
                f"{after!r} runs after itself", expected="two instructions", rule=RULE
            )
        found[after] = (*found.get(after, ()), *names)
    return found


def _unread(given: Any) -> SignatureError:
    return SignatureError(
        "with_schedule takes pairs of names", expected=_FORM, got=repr(given)[:80], rule=RULE
    )


class Scheduled(Watcher):
    """Checks the order of a kernel's instructions against its edges."""

    def __init__(self, edges: Edges) -> None:
        self._edges = edges
        self._named = edges.keys() | {name for befores in edges.values() for name in befores}
        self._seen: dict[str, Place | None] = {}
        """The named instructions that have run in this program."""
        self._early: dict[str, list[str]] = {}
        """A name that has not run → the names that have run and should run after it."""

    def will(self, event: Event) -> None:
        if event.name is None or event.name not in self._named:
            return
        self._check_order(event.name, event)
        befores = self._edges.get(event.name, ())
        absent = [before for before in befores if before not in self._seen]
        for before in absent:
            self._early.setdefault(before, []).append(event.name)
        launch = RUNNING.get()
        if befores and not absent and launch is not None:
            for watcher in launch.core.watchers:
                watcher.told(event.place, [self._seen[before] for before in befores])

    def _check_order(self, name: str, event: Event) -> None:
        """Note that the instruction runs now; raises for a second one, or for one that is late."""
        if name in self._seen:
            raise LaunchError(
                f"two instructions are called {name!r}, and an edge names one", place=event.place,
                expected="names of their own", got=f"the first is at {self._seen[name]}",
                hint="a call in a Python loop runs once a turn: put the turn into its name",
                rule=RULE,
            )  # fmt: skip
        self._seen[name] = event.place
        for after in self._early.pop(name, ()):
            raise AttributeValueError(
                f"{after!r} is to run after {name!r} and has run before it", place=event.place,
                expected="an edge that agrees with program order",
                got=f"{after!r} is at {self._seen[after]}",
                hint=f"move {name!r} in front of {after!r}: another order than the program's is "
                "not modelled", rule=RULE,
            )  # fmt: skip

    def returned(self, value: Any) -> None:
        absent = sorted(self._named - self._seen.keys())
        self._seen.clear()
        self._early.clear()
        if absent:
            raise LaunchError(
                f"no instruction is called {absent[0]!r}", expected="names of instructions, name=",
                got=", ".join(map(repr, absent)), rule=RULE,
            )  # fmt: skip
