"""Explicit dependences, in place of those found from accessed bytes."""

from __future__ import annotations

from typing import Protocol


class Gate(Protocol):
    """Dependences of the instances of one call, in the order in which they are played.

    `look` gives the tick from which the next one may start; until the next `look`, `bar` is the
    micro-op that it waited for (-1: none) and `why` the index of the cause in `CAUSES`. `done`
    reports that it releases everything at tick `release`, and the number of its last bar.
    """

    @property
    def bar(self) -> int: ...

    @property
    def why(self) -> int: ...

    def look(self) -> int: ...

    def done(self, release: int, bar: int) -> None: ...


class Order(Protocol):
    """An order of a program's calls, counted in program order."""

    def gate(self, call: int) -> Gate:
        """Dependences of call number `call`."""
        ...

    def queue(self, call: int) -> int:
        """The DMA queue that executes call number `call`, a DMA."""
        ...
