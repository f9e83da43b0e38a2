"""The languages that are installed, found by entry points and loaded when first asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING

from neuroncore.machine.backend import ENTRY_POINT_GROUP, Backend
from nki_runtime.switch.errors import BackendError, UnknownBackendError
from nki_runtime.switch.neuron import NEURON

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Registry(Mapping[str, Backend]):
    """Backends by name: the installed languages, then the vendor's own package.

    Iterating names imports nothing; looking one up loads it. Raises UnknownBackendError for an
    unknown name and BackendError for one that is announced and does not load.
    """

    def __getitem__(self, name: str) -> Backend:
        if name == NEURON.name:
            return NEURON
        announced = _announced(tuple(sys.path))
        if name not in announced:
            raise _unknown(name, self)
        return _load(announced[name])

    def __iter__(self) -> Iterator[str]:
        yield from _announced(tuple(sys.path))
        yield NEURON.name

    def __len__(self) -> int:
        return len(_announced(tuple(sys.path))) + 1

    def __contains__(self, name: object) -> bool:
        return name == NEURON.name or name in _announced(tuple(sys.path))


def backends() -> Registry:
    """Every backend that `use(backend=…)` accepts on this machine, by name."""
    return Registry()


def loadable(registry: Mapping[str, Backend]) -> Iterator[Backend]:
    """The backends that load; one broken distribution does not take the others away."""
    for name in registry:
        try:
            yield registry[name]
        except BackendError:
            continue


@lru_cache(maxsize=8)
def _announced(path: tuple[str, ...]) -> dict[str, EntryPoint]:
    """Entry points by name; of two with one name, the first on `path` counts, as for imports."""
    from importlib.metadata import entry_points  # 20 ms

    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=ENTRY_POINT_GROUP):
        found.setdefault(point.name, point)
    return dict(sorted(found.items()))


def _load(point: EntryPoint) -> Backend:
    try:
        backend = point.load()
    except (ImportError, AttributeError) as reason:
        raise BackendError(
            f"backend {point.name!r} does not load from {point.value}",
            got=f"{type(reason).__name__}: {reason}",
            hint=_mend(point),
        ) from reason
    if not isinstance(backend, Backend):
        raise BackendError(
            f"backend {point.name!r} from {point.value} is not a backend",
            expected="an object with the members of neuroncore.machine.backend.Backend",
            got=type(backend).__name__,
        )
    return backend


def _mend(point: EntryPoint) -> str | None:
    return f"reinstall the distribution {point.dist.name!r}" if point.dist else None


_DISTRIBUTIONS = {"beta1": "nki-beta1", "beta2": "nki-beta2", "nkigen-lite": "nkigen-lite"}
"""Backend of this project → the distribution that it comes with."""


def _unknown(name: str, registry: Registry) -> UnknownBackendError:
    expected = f"one of {', '.join(registry)}"
    if distribution := _DISTRIBUTIONS.get(name):
        return UnknownBackendError(
            f"backend {name!r} is not installed: it is in {distribution}",
            expected=expected, hint=f"pip install {distribution}",
        )  # fmt: skip
    near = get_close_matches(name, list(registry), n=1)
    hint = f"did you mean {near[0]!r}?" if near else None
    return UnknownBackendError(f"no backend is called {name!r}", expected=expected, hint=hint)
