"""The protocol of a search space, for all kinds of programs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

State = TypeVar("State")
Step = TypeVar("Step")


class RejectedStepError(Exception):
    """A step that cannot be taken from a state; its text is the reason, the same for all alike."""


class Applied(NamedTuple, Generic[State]):
    """The state after a step, and the single steps that it is made of."""

    state: State
    singles: Sequence[Any]


@dataclass(frozen=True, slots=True)
class StepKinds:
    """When a descent takes which kinds of step. All the others come at its end.

    `first` seldom harm, and are taken also where nothing is gained yet; `then` change numbers;
    `some` change the form, so that each descent takes a few of them; of `last` each step is tried,
    and the best is taken.
    """

    first: tuple[str, ...] = ()
    then: tuple[str, ...] = ()
    some: tuple[str, ...] = ()
    last: tuple[str, ...] = ()


class SearchSpace(Protocol[State, Step]):
    """States, the steps between them, and the checks of a state, inexpensive ones first.

    Everything is a function of the state alone, so that a search can be repeated.
    """

    @property
    def name(self) -> str:
        """The subject of the search, in a word."""
        ...

    @property
    def root(self) -> State:
        """Where it begins."""
        ...

    @property
    def kinds(self) -> StepKinds:
        """When a descent takes which kinds of step."""
        ...

    def statements(self, state: State) -> int:
        """How long a state is."""
        ...

    def steps(self, state: State) -> Sequence[Step]:
        """Every opportunity, in an order that is always the same."""
        ...

    def apply(self, state: State, step: Step) -> Applied[State]:
        """The state after a step, proved to compute the same. Raises RejectedStepError."""
        ...

    def kind(self, step: Step) -> str:
        """The kind of a step, in a word."""
        ...

    def family(self, step: Step) -> Hashable:
        """The same for steps that differ in numbers alone, such as a factor."""
        ...

    def key(self, state: State) -> Hashable:
        """Equal for equal states."""
        ...

    def illegal(self, state: State) -> str | None:
        """Why the machine does not take it; None where it does."""
        ...

    def over_capacity(self, state: State) -> str | None:
        """Which memory is too small for it; None where it fits."""
        ...

    def bound_ns(self, state: State) -> float:
        """A lower bound of its latency."""
        ...

    def latency_ns(self, state: State) -> float:
        """The estimated latency."""
        ...

    def digest(self, state: State) -> str:
        """The key of a store: equal for equal programs, also in another process."""
        ...

    def write_step(self, single: Any) -> Any:
        """A single step as JSON."""
        ...

    def read_step(self, given: Any) -> Any:
        """A single step from JSON. Raises ValueError where it is none."""
        ...
