"""Positional arguments where a version inserted parameters: what the two signatures say.

Nothing here lists functions: the signatures of both versions are compared.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache

from neuroncore.findings import Finding
from neuroncore.surface import Signature, signature
from nki_migrate.rules.arguments import Check, Order, moved_arguments
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_ENUMS = {
    "Engine": "engine", "DgeMode": "dge_mode", "OobMode": "oob_mode", "ReduceCmd": "reduce_cmd",
    "MatmulPerfMode": "matmul_perf_mode", "DmaEngine": "dma_engine",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Step:
    """The functions of a version step whose parameters changed places, reported under a rule.

    With `inserted`, only the functions that this parameter is new in; with `without`, the others.
    """

    rule: str
    before: str
    after: str
    inserted: str | None = None
    without: str | None = None

    def covers(self, old: Signature, new: Signature) -> bool:
        added = {p.name for p in new.params} - {p.name for p in old.params}
        return self.without not in added and (self.inserted is None or self.inserted in added)


@cache
def _check_of(step: _Step, called: str) -> Check | None:
    """The check of a function whose positional parameters differ, by its canonical name."""
    name = called.removeprefix("nisa.")
    old, new = signature(name, step.before), signature(name, step.after)
    if name == called or old is None or new is None or not step.covers(old, new):
        return None
    first = first_difference(old, new)
    if first is None:
        return None
    return moved_arguments(step.rule, called, _order(old), _order(new), _suits(old, new), first)


def first_difference(old: Signature, new: Signature) -> int | None:
    """The place of the first parameter that fills another field now; None: new ones come behind."""
    later = [p.field for p in new.params]
    places = (i for i, p in enumerate(old.params) if later[i : i + 1] != [p.field])
    return next(places, None)


def _order(found: Signature) -> Order:
    names = tuple(p.name for p in found.params)
    return Order(names, frozenset(p.name for p in found.params if p.required))


def _suits(old: Signature, new: Signature) -> Callable[[dict[str, ast.expr], Site], bool | None]:
    """Whether arguments suit the parameters of a reading: texts are names, members are modes."""
    defaults = {p.name: p.default for s in (old, new) for p in s.params}

    def fits(bound: dict[str, ast.expr], site: Site) -> bool | None:
        suits = {n: _suits_parameter(n, defaults[n], value, site) for n, value in bound.items()}
        if False in suits.values():
            return False
        marks = [n for n in bound if n == "name" or isinstance(defaults[n], Enum)]
        return True if any(suits[n] for n in marks) else None

    return fits


def _suits_parameter(parameter: str, default: object, value: ast.expr, site: Site) -> bool | None:
    """Whether a value may be an argument of a parameter; None where that is not known."""
    if _is_text(value):
        return parameter == "name"
    name = site.canonical(value)
    if isinstance(value, ast.Constant):
        is_flag = isinstance(value.value, bool)
        return is_flag if isinstance(default, bool) else _takes_number(parameter, default, value)
    if name is None:
        return None
    if isinstance(default, Enum):
        return name.startswith(f"nisa.{_ENUMS[type(default).__name__]}.")
    return None if parameter != "name" and not isinstance(default, bool) else False


def _takes_number(parameter: str, default: object, value: ast.Constant) -> bool | None:
    """A number, or None, is neither a mode nor a name."""
    if value.value is None:
        return None if not isinstance(default, Enum) else False
    return False if parameter == "name" or isinstance(default, Enum) else None


def _is_text(node: ast.expr) -> bool:
    is_constant = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return is_constant or isinstance(node, ast.JoinedStr)


def _hooks(step: _Step) -> Hooks:
    def check(call: ast.Call, site: Site) -> Iterator[Finding]:
        found = _check_of(step, site.canonical(call.func) or "")
        if found is not None:
            yield from found(call, site)

    return Hooks(nodes=(ast.Call,), check=check)


_STEPS = (
    _Step("NKI3007", "0.3", "0.4", inserted="priority"),
    _Step("NKI3008", "0.3", "0.4", without="priority"),
    _Step("NKI5006", "0.5", "0.6"),
    _Step("NKI6014", "0.6", "0.7"),
)
HOOKS = {step.rule: _hooks(step) for step in _STEPS}
