"""From what was asked, by whom, to one Choice.

Explicit arguments win over the enclosing switch, that over the environment, that over the default.
Each of the three is a `Wish`; what a wish leaves open the next one decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from neuroncore.backend import Backend, Choice
from neuroncore.options import Options, make_options
from neuroncore.targets import resolve_target
from nki_runtime.errors import ChoiceError
from nki_runtime.neuron import NEURON
from nki_runtime.registry import loadable

DEFAULT_BACKEND = "beta2"
DEFAULT_TARGET = "trn2"


@dataclass(frozen=True, slots=True)
class Wish:
    """What one place asks for; None where it does not say."""

    backend: str | None = None
    nki: str | None = None
    target: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    source: str = "use()"
    """Who asks, for messages: "use()", or the name of an environment variable."""


def wish_of(choice: Choice) -> Wish:
    """The enclosing switch as a wish: it has an opinion on everything."""
    options = {f.name: getattr(choice.options, f.name) for f in fields(Options)}
    return Wish(choice.backend, choice.nki, choice.target, options, "the enclosing use()")


def choose(wishes: Sequence[Wish], registry: Mapping[str, Backend]) -> Choice:
    """The choice that `wishes`, most important first, add up to.

    Raises ChoiceError for names that nobody answers to, LaunchError for an unknown option or
    target, VendorPackageError when the vendor's package is wanted and is not there.
    """
    backend, nki = _choose_language(wishes, registry)
    target = next((w.target for w in wishes if w.target is not None), DEFAULT_TARGET)
    options = Options()
    for wish in reversed(wishes):
        options = make_options(options, dict(wish.options))
    return Choice(backend.name, nki, resolve_target(target).name, options)


def _choose_language(
    wishes: Sequence[Wish], registry: Mapping[str, Backend]
) -> tuple[Backend, str]:
    """The most important backend, in the most important version that is meant for it."""
    speaks = next((i for i, w in enumerate(wishes) if w.backend is not None), len(wishes))
    name = wishes[speaks].backend if speaks < len(wishes) else DEFAULT_BACKEND
    versions = [(i, w) for i, w in enumerate(wishes) if w.nki is not None]
    if versions and versions[0][0] < speaks:
        return _language_of(versions[0][1], str(name), registry)
    backend = registry[str(name)]
    if versions and versions[0][0] == speaks:
        return backend, _version(backend, versions[0][1], registry)
    for _, wish in versions:
        # A less important place may have meant another language; that is no contradiction.
        if backend is not NEURON and wish.nki in backend.versions:
            return backend, str(wish.nki)
    return backend, backend.default_version


def _language_of(
    wish: Wish, otherwise: str, registry: Mapping[str, Backend]
) -> tuple[Backend, str]:
    """For a version without a language: the one in question if it speaks it, else who does."""
    backend = registry.get(otherwise)
    if backend is None or (backend is not NEURON and wish.nki not in backend.versions):
        others = [b for b in loadable(registry) if _is_language(b) and wish.nki in b.versions]
        backend = others[0] if len(others) == 1 else registry[otherwise]
    return backend, _version(backend, wish, registry)


def _version(backend: Backend, wish: Wish, registry: Mapping[str, Backend]) -> str:
    if backend is NEURON:
        return NEURON.require(wish.nki)
    if wish.nki in backend.versions:
        return str(wish.nki)
    speakers = [b.name for b in loadable(registry) if _is_language(b) and wish.nki in b.versions]
    hint = f"backend {' or '.join(map(repr, speakers))} speaks it" if speakers else None
    if isinstance(wish.nki, float | int):
        hint = f'versions are strings: nki="{wish.nki}"'
    raise ChoiceError(
        f"backend {backend.name!r} does not speak NKI {wish.nki} (asked for by {wish.source})",
        expected=f"one of {', '.join(backend.versions)}",
        got=repr(wish.nki),
        hint=hint,
    )


def _is_language(backend: Backend) -> bool:
    """Whether a version alone may mean it: not the vendor's package, not a generator of kernels."""
    return backend is not NEURON and getattr(backend, "is_language", True)


def describe(choice: Choice) -> str:
    """A choice in a few words: language, version, device, and options that are not the default."""
    default = Options()
    changed = [
        f"{f.name}={getattr(choice.options, f.name)!r}"
        for f in fields(Options)
        if getattr(choice.options, f.name) != getattr(default, f.name)
    ]
    said = f"{choice.backend} {choice.nki} on {choice.target}"
    return f"{said} with {', '.join(changed)}" if changed else said
