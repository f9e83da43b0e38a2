"""Setting and leaving the switch.

sys.modules belongs to the process, so the open switches do too: they form one list, and the last
one answers. A switch may change what answers only where it is not visible to others: in the thread
and context (task) that opened all others. A `ModuleTable` records what the switches put into
sys.modules, and what was there.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib.util import find_spec
from types import ModuleType, TracebackType
from typing import Any, Self

from neuroncore.machine.backend import CURRENT, Backend, Choice
from neuroncore.machine.observe import WATCHERS, Watcher
from nki_runtime.switch.choice import describe
from nki_runtime.switch.errors import ShadowError, SwitchError
from nki_runtime.switch.neuron import find_real

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
                self.saved |= {n: m for n, m in sys.modules.items() if _any_under(n, (top,))}
                self.tops.add(top)
                self._save_parents(top, layer)

    def keep_imports(self, layer: Layer) -> None:
        """Modules that an uncovered package has imported of itself are its own and stay."""
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
    return name in tops or name.startswith(tuple([f"{top}." for top in tops]))


_ENCLOSING: ContextVar[tuple[Switch, ...]] = ContextVar("nki_runtime._ENCLOSING", default=())
"""The open switches of this thread and task, outermost first."""

_OUTSIDE: ContextVar[tuple[Choice | None, tuple[Watcher, ...]]] = ContextVar("nki_runtime._OUTSIDE")
"""CURRENT and WATCHERS as they were around the outermost of them."""


def _is_importable(package: str) -> bool:
    """Whether a language or an installed package supplies it."""
    return package in sys.modules or find_spec(package) is not None


class Switch:
    """One `use()`: in force from its creation until `close()` or the end of its `with` block."""

    def __init__(
        self,
        choice: Choice,
        backend: Backend,
        *,
        shadow: bool = False,
        observers: Iterable[Watcher] = (),
    ) -> None:
        self.choice = choice
        self.observers = tuple(observers)
        self.thread = threading.current_thread()
        self.is_open = False
        self.is_block = False
        """Whether a `with` statement holds it; otherwise it is a setting of the whole process."""
        self._backend = backend
        BOARD.open(self, shadow=shadow)
        _surround((self,))

    def close(self) -> None:
        """Give the names back. Closing twice does nothing.

        Raises SwitchError if another thread still uses this language while the one to return to is
        another one; what was asked is done as soon as that thread leaves.
        """
        if not self.is_open:
            return
        BOARD.close(self)
        enclosing = _surround(())
        BOARD.check_returned(enclosing)

    def layer(self) -> Layer:
        """The modules of the choice, and the import roots they answer."""
        tops = getattr(self._backend, "tops", (self._backend.top_level,))
        modules = dict(self._backend.modules(self.choice))
        old = getattr(self._backend, "annotations", lambda choice: {})(self.choice)
        if old and not _is_importable(next(iter(old))):
            tops, modules = (*tops, *(name for name in old if name.count(".") == 1)), modules | old
        return Layer(tops, modules, uncovers=not modules)

    def __enter__(self) -> Self:
        if not self.is_open:
            raise SwitchError(
                f"this switch to {describe(self.choice)} is closed", hint="call use() again"
            )
        self.is_block = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except SwitchError as second:
            if error is None:
                raise
            error.add_note(str(second))

    def __repr__(self) -> str:
        state = "open" if self.is_open else "closed"
        return f"<Switch to {describe(self.choice)}, {state}>"


class _Switchboard:
    """All open switches of the process and the part of sys.modules they answer for."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._open: list[Switch] = []
        self._layers: dict[Switch, Layer] = {}
        self._table = ModuleTable()

    def in_force(self) -> Choice | None:
        """The choice that `import nki` leads to at this moment."""
        with self._lock:
            return self._open[-1].choice if self._open else None

    def open(self, switch: Switch, *, shadow: bool) -> None:
        with self._lock:
            self._check_threads(switch)
            layer = switch.layer()
            if not (shadow or layer.uncovers):
                self._check_real(layer)
            with self._changing():
                self._table.touch(layer)
                self._open.append(switch)
                self._layers[switch] = layer
        switch.is_open = True

    def close(self, switch: Switch) -> None:
        with self._lock, self._changing():
            switch.is_open = False
            self._open.remove(switch)
            self._table.keep_imports(self._layers.pop(switch))

    def check_returned(self, enclosing: tuple[Switch, ...]) -> None:
        """After a close: is the language that this thread returns to the one that answers?"""
        with self._lock:
            last = self._open[-1] if self._open else None
        if enclosing and last and not _is_mine(last) and last.choice != enclosing[-1].choice:
            raise SwitchError(
                f"thread {last.thread.name!r} still uses {describe(last.choice)}",
                expected=f"{describe(enclosing[-1].choice)} again, as around this block",
                got=f"{describe(last.choice)} until that thread leaves its use()",
                hint="join the threads before the block ends",
                rule="nki-runtime: sys.modules is shared by all threads",
            )

    @contextmanager
    def _changing(self) -> Iterator[None]:
        before = self._visible()
        yield
        if self._visible() != before:
            self._table.show([self._layers[switch] for switch in self._open])

    def _visible(self) -> list[Choice]:
        """The choices that answer for something, last first; of equal ones the last counts."""
        return list(dict.fromkeys(switch.choice for switch in reversed(self._open)))

    def _check_threads(self, switch: Switch) -> None:
        in_force = self.in_force()
        others = [other for other in self._open if other.thread.is_alive() and not _is_mine(other)]
        if not others or switch.choice == in_force:
            return
        other = next((o for o in reversed(others) if o.choice != switch.choice), others[-1])
        raise SwitchError(
            f"another choice is in force in {_who(other)}",
            expected=f"{describe(other.choice)}, as in force there",
            got=f"{describe(switch.choice)}, asked for by thread {switch.thread.name!r}",
            hint="leave the other use() first, ask for the same choice, or use a child process",
            rule="nki-runtime: sys.modules is shared by all threads",
        )

    def _check_real(self, layer: Layer) -> None:
        beneath = self._table.beneath()
        for root in _new_roots(layer, self._table.tops):
            where = find_real(root, beneath)
            if where is not None:
                raise ShadowError(
                    f"a package {root!r} that is not ours is installed and would be hidden",
                    got=where,
                    hint="say use(..., shadow=True) (nki-run --shadow) to hide it for the time of "
                    'the switch, or use backend="neuron" to run it',
                    rule="nki-runtime: a real nki is never shadowed unless asked",
                )


BOARD = _Switchboard()


def _surround(new: tuple[Switch, ...]) -> tuple[Switch, ...]:
    """The open switches of this context and `new`; CURRENT and WATCHERS say what they say.

    Switches may be closed in any order, and in another context than they were opened in (a
    generator or task that is thrown away), so this reads all of them and uses no reset tokens.
    """
    if not _ENCLOSING.get():
        _OUTSIDE.set((CURRENT.get(), WATCHERS.get()))
    choice, watchers = _OUTSIDE.get()
    known = {id(w) for w in (*watchers, *_observers(_ENCLOSING.get()))}
    inside = (w for w in WATCHERS.get() if id(w) not in known)  # of `watched_by` in a switch
    enclosing = (*(switch for switch in _ENCLOSING.get() if switch.is_open), *new)
    _ENCLOSING.set(enclosing)
    CURRENT.set(enclosing[-1].choice if enclosing else choice)
    WATCHERS.set((*watchers, *inside, *_observers(enclosing)))
    return enclosing


def _observers(switches: Iterable[Switch]) -> Iterator[Watcher]:
    return (watcher for switch in switches for watcher in switch.observers)


def _new_roots(layer: Layer, touched: set[str]) -> Iterable[str]:
    return {top.partition(".")[0] for top in layer.tops if top not in touched}


def _is_mine(switch: Switch) -> bool:
    """Whether the running code may change what the switch set: it is around us, or a mere setting.

    Tasks of one thread have contexts of their own, so a block around us is one of our context. A
    plain `use()` is not a block: each cell of a notebook, say, may run in a context of its own.
    """
    same_thread = switch.thread is threading.current_thread()
    return same_thread and (not switch.is_block or switch in _ENCLOSING.get())


def _who(other: Switch) -> str:
    if other.thread is threading.current_thread():
        return f"another task of thread {other.thread.name!r}"
    return f"thread {other.thread.name!r}"
