"""The protocol of a language that implements `import nki`, with or without the switch.

The switch lives in nki_runtime; this protocol lives below it so that a language can also be called
directly. Languages are found through the entry point group `nki_runtime.backends`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Protocol, runtime_checkable

from neuroncore.options import Options

ENTRY_POINT_GROUP = "nki_runtime.backends"

VERSION_DETECTOR_GROUP = "nki_runtime.version_detectors"
"""Entry points of functions from files to the `Detected` kernels in them."""


@dataclass(frozen=True, slots=True)
class Detected:
    """The version that a kernel is written for: a version, or "mixed", and the reason.

    `place` is "file:line"; `needs` is the oldest version that has every name that it uses.
    """

    place: str
    kernel: str
    version: str
    why: str
    needs: str


@dataclass(frozen=True, slots=True)
class Choice:
    """Which language answers, in which version, on which device, under which options."""

    backend: str
    nki: str
    target: str = "trn2"
    options: Options = field(default_factory=Options)


CURRENT: ContextVar[Choice | None] = ContextVar("neuroncore.machine.backend.CURRENT", default=None)
"""The choice in force in this thread; None when no switch is active."""


@runtime_checkable
class Backend(Protocol):
    """One language on the machine."""

    @property
    def name(self) -> str:
        """As in nki_runtime.use(backend=name)."""
        ...

    @property
    def versions(self) -> tuple[str, ...]:
        """NKI versions it speaks, oldest first."""
        ...

    @property
    def default_version(self) -> str: ...

    @property
    def top_level(self) -> str:
        """The import root it answers: "nki" or "neuronxcc.nki"."""
        ...

    def modules(self, choice: Choice) -> Mapping[str, ModuleType]:
        """Every module name it answers for this choice, parents included, ready for sys.modules.

        The same choice gives the same modules, so that identities survive nesting.
        """
        ...

    def is_kernel(self, obj: object) -> bool:
        """Whether `obj` is a kernel of this language (made by its `nki.jit`)."""
        ...

    def simulate(self, kernel: Any, choice: Choice) -> Any:
        """A callable like `kernel`, also subscriptable with a grid, that runs it on the machine.

        Takes NumPy arrays and scalars, gives NumPy arrays: the kernel's return values. Inputs that
        the kernel writes are updated in place. `kernel` may be an undecorated function.
        """
        ...
