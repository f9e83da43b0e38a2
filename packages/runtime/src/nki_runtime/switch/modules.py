"""The part of sys.modules that the switch answers for: what it put there and what was there."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

_ABSENT: Any = object()


@dataclass(frozen=True, slots=True)
class Layer:
    """The modules of one switch. `tops` are the import roots it answers, children included."""

    tops: tuple[str, ...]
    modules: Mapping[str, ModuleType] = field(default_factory=dict)
    uncovers: bool = False
    """Give the names back to the modules beneath all switches (the vendor's package)."""


@dataclass(slots=True)
class ModuleTable:
    """Layers over sys.modules. Where names collide the later layer answers.

    Meaning: sys.modules restricted to the touched roots = saved entries, overlaid by each layer in
    turn; a layer hides everything below its roots that it does not supply itself, so that no module
    of one language is ever reached through another. With no layer left the saved entries are back,
    the same objects.
    """

    saved: dict[str, ModuleType] = field(default_factory=dict)
    tops: set[str] = field(default_factory=set)
    stand_ins: set[str] = field(default_factory=set)
    """Parents of a root (`neuronxcc`) that had not been imported: ours replaces it."""
    attributes: dict[str, Any] = field(default_factory=dict)
    """Per root with an imported foreign parent: the attribute the parent had, or _ABSENT."""

    def beneath(self) -> Mapping[str, ModuleType]:
        """sys.modules as it would be without us."""
        ours = {name for name in sys.modules if self._is_touched(name)}
        return {n: m for n, m in sys.modules.items() if n not in ours} | self.saved

    def touch(self, layer: Layer) -> None:
        """Save what lies under the layer's roots, before they are answered for the first time."""
        for top in layer.tops:
            if top not in self.tops:
                self.saved |= {n: m for n, m in sys.modules.items() if _is_under(n, top)}
                self.tops.add(top)
                self._save_parents(top, layer)

    def keep_imports(self, layer: Layer) -> None:
        """What an uncovered package has imported of itself is its own and stays."""
        if layer.uncovers:
            self.saved |= {n: m for n, m in sys.modules.items() if _any_under(n, layer.tops)}

    def show(self, layers: Sequence[Layer]) -> None:
        """Make sys.modules and the parents' attributes say what `layers` say."""
        wanted = self._overlay(layers)
        sys.modules.update(wanted)
        for name in [n for n in sys.modules if self._is_touched(n) and n not in wanted]:
            del sys.modules[name]
        for top, before in self.attributes.items():
            self._set_attribute(top, wanted.get(top), before)
        if not layers:
            for store in (self.saved, self.tops, self.stand_ins, self.attributes):
                store.clear()

    def _overlay(self, layers: Sequence[Layer]) -> dict[str, ModuleType]:
        wanted = dict(self.saved)
        for layer in layers:
            wanted = {n: m for n, m in wanted.items() if not _any_under(n, layer.tops)}
            source = self.saved if layer.uncovers else layer.modules
            wanted |= {n: m for n, m in source.items() if _any_under(n, layer.tops)}
            wanted |= {n: layer.modules[n] for n in self.stand_ins & layer.modules.keys()}
        return wanted

    def _save_parents(self, top: str, layer: Layer) -> None:
        parent, _, leaf = top.rpartition(".")
        if parent in sys.modules and parent not in self.stand_ins:
            self.attributes[top] = vars(sys.modules[parent]).get(leaf, _ABSENT)
        elif parent in layer.modules:
            self.stand_ins.add(parent)

    def _set_attribute(self, top: str, module: ModuleType | None, before: Any) -> None:
        parent, _, leaf = top.rpartition(".")
        value = before if module is self.saved.get(top) else module
        if value is not _ABSENT:
            setattr(sys.modules[parent], leaf, value)
        elif leaf in vars(sys.modules[parent]):
            delattr(sys.modules[parent], leaf)

    def _is_touched(self, name: str) -> bool:
        return name in self.stand_ins or _any_under(name, self.tops)


def _any_under(name: str, tops: set[str] | tuple[str, ...]) -> bool:
    return any(_is_under(name, top) for top in tops)


def _is_under(name: str, top: str) -> bool:
    return name == top or name.startswith(top + ".")
