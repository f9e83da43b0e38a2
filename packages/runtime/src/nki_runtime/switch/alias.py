"""`alias`: the chosen language under one more name, for code that imports it by another."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Self

from nki_runtime.switch.errors import ShadowError, SwitchError
from nki_runtime.switch.installed import find_real
from nki_runtime.switch.registry import backends
from nki_runtime.switch.use import current


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
