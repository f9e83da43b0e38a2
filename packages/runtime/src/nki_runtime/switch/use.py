"""`use`: the question that everything else in this package answers."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from neuroncore.machine.backend import CURRENT, Choice
from neuroncore.machine.observe import Watcher
from nki_runtime.switch.choice import (
    ChoiceRequest,
    choose,
    read_environment,
    request_of,
)
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
    return Switch(choice, backends()[choice.backend], shadow=shadow, observers=observers)
