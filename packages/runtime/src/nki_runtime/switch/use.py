"""`use` sets the language in force; `alias` gives it one more name to be imported by."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any, Self

from neuroncore.machine.backend import CURRENT, Choice
from neuroncore.machine.observe import Watcher
from nki_runtime.switch.choice import (
    ChoiceRequest,
    choose,
    read_environment,
    request_of,
)
from nki_runtime.switch.errors import ShadowError, SwitchError
from nki_runtime.switch.neuron import find_real
from nki_runtime.switch.registry import backends
from nki_runtime.switch.switch import BOARD, Switch


def current() -> Choice | None:
    """The choice in force here: of the running context, else of the process; None outside any."""
    return CURRENT.get() or BOARD.in_force()


def resolve_choice(request: ChoiceRequest | None = None) -> Choice:
    """The choice that `use` would make of `request`, without making it. Raises as `use` does."""
    enclosing = current()
    requests = [
        request or ChoiceRequest(),
        *([request_of(enclosing)] if enclosing else []),
        *read_environment(os.environ),
    ]
    return choose(requests, backends())


def use(
    backend: str | None = None,
    nki: str | None = None,
    target: str | None = None,
    *,
    shadow: bool = False,
    observers: Iterable[Watcher] = (),
    **options: Any,
) -> Switch:
    """Let a language of ours answer `import nki` (or `import neuronxcc.nki`).

    In force from the call on: until the end of the `with` block, until `close()` of what is
    returned, or until the interpreter ends. Then sys.modules holds the same objects as before.

    backend: "beta1", "beta2", "neuron" (the vendor's package) or any other of `backends()`.
    nki: the version, such as "0.6"; alone it also picks the language that speaks it.
    target: trn1|inf2|gen2, trn2|gen3 or trn3|gen4.
    shadow: hide an installed package of the same name for the time being.
    observers: neuroncore.machine.observe.Watchers that see every instruction of kernels launched
        inside.
    options: fields of neuroncore.options.Options, such as precise=False.
    What is left out comes from the enclosing `use`, then the environment, then the default
    (beta2, its default version, trn2).

    Raises ChoiceError, ShadowError, VendorPackageError, SwitchError (another choice is in force in
    another thread or task), LaunchError (unknown option).
    """
    choice = resolve_choice(ChoiceRequest(backend, nki, target, options))
    seen_by = (*observers, *_poisoning(choice))
    return Switch(choice, backends()[choice.backend], shadow=shadow, observers=seen_by)


def _poisoning(choice: Choice) -> Iterable[Watcher]:
    """Watchers that poison undefined results, where Options.undefined_results requests it."""
    if choice.options.undefined_results == "poison":
        from neuroncore.checks import Report
        from neuroncore.checks.traps import Traps

        yield Traps(Report())


class Alias:
    """One `alias()`: in force from its creation until `close()` or the end of its `with` block."""

    def __init__(self, name: str) -> None:
        choice = current()
        if choice is None or not all(part.isidentifier() for part in name.split(".")):
            raise SwitchError(
                f"no language can be called {name!r}" if choice else "no language is chosen",
                expected="a dotted module name, inside of use()", got=f"alias({name!r})",
                hint='with use("beta2"), alias("nki_cpu_simulator.nki"): …',
            )  # fmt: skip
        root = name.partition(".")[0]
        where = find_real(root, sys.modules)
        if where is not None:
            raise ShadowError(
                f"there is a module {root!r} already", got=where,
                hint="choose another name: an alias hides nothing",
            )  # fmt: skip
        backend = backends()[choice.backend]
        top = backend.top_level
        found = {
            name + n.removeprefix(top): module
            for n, module in backend.modules(choice).items()
            if n == top or n.startswith(f"{top}.")
        }
        self._modules = _parents(name, found) | found
        sys.modules.update(self._modules)

    def close(self) -> None:
        """Take the name away again. Closing twice does nothing."""
        for name, module in self._modules.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def alias(name: str) -> Alias:
    """Let the language in force answer `import name`, too, as the same modules.

    It stays the language of the time of the call. Raises SwitchError where
    none is chosen, ShadowError where the name's first part is taken.
    """
    return Alias(name)


def _parents(name: str, found: dict[str, ModuleType]) -> dict[str, ModuleType]:
    """Packages above `name`, each with the next one in it."""
    parents: dict[str, ModuleType] = {}
    child = found[name]
    while "." in name:
        name, _, leaf = name.rpartition(".")
        parents[name] = package = ModuleType(name)
        package.__path__ = []
        setattr(package, leaf, child)
        child = package
    return parents
