"""`kernel.with_schedule(edges)`: instructions that run after others, by name, whatever data says.

Here instructions run in program order, so an edge that agrees with it changes no value; one that
does not would need another order and is refused. What plays instructions in an order of its own (a
recording for time, a token plan) is told of each edge, as of `depends_on`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from neuroncore.errors import AttributeValueError, LaunchError, Place, SignatureError
from neuroncore.launch import RUNNING
from neuroncore.observe import Event, Watcher

Edges = Mapping[str, tuple[str, ...]]
"""An instruction's name → the names of those that it runs after."""

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
    """Holds the instructions of a kernel to its edges."""

    def __init__(self, edges: Edges) -> None:
        self._edges = edges
        self._named = edges.keys() | {name for befores in edges.values() for name in befores}
        self._seen: dict[str, Place | None] = {}
        """Those of them that have run in this program."""
        self._early: dict[str, list[str]] = {}
        """A name that has not come → those that have run and are to run after it."""

    def will(self, event: Event) -> None:
        name = event.name
        if name not in self._named or name is None:
            return
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
        befores = self._edges.get(name, ())
        absent = [before for before in befores if before not in self._seen]
        for before in absent:
            self._early.setdefault(before, []).append(name)
        if absent:
            return
        launch = RUNNING.get()
        for watcher in () if launch is None or not befores else launch.core.watchers:
            watcher.told(event.place, [self._seen[before] for before in befores])

    def returned(self, value: Any) -> None:
        absent = sorted(self._named - self._seen.keys())
        self._seen.clear()
        self._early.clear()
        if absent:
            raise LaunchError(
                f"no instruction is called {absent[0]!r}", expected="names of instructions, name=",
                got=", ".join(map(repr, absent)), rule=RULE,
            )  # fmt: skip
