"""Calls that stay as they are, and that the next version gives another meaning.

What changes is a row of `neuroncore.surface.meaning_changes`; a rule here says which calls of its
functions it concerns.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from neuroncore.findings import Finding
from neuroncore.surface import MeaningChange, meaning_changes
from nki_migrate.index import walk
from nki_migrate.rules.arguments import has_unknown_arguments, is_device_call
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site
from nki_migrate.rules.tiles import allocation_of, argument

Check = Callable[[ast.Call, Site], Iterator[Finding]]


def _change(id: str) -> MeaningChange:
    return next(change for change in meaning_changes() if change.id == id)


def _said(change: MeaningChange, call: ast.Call, site: Site) -> str:
    name = site.canonical(call.func)
    return f"{name}: from {change.since} on {change.after}; before, {change.before}"


def _reporting(rule: str, id: str, concerns: Callable[[ast.Call, Site], bool]) -> Check:
    """A check that reports the calls of a row's functions that `concerns` finds."""
    change = _change(id)

    def check(call: ast.Call, site: Site) -> Iterator[Finding]:
        if is_device_call(call, site, *change.functions) and concerns(call, site):
            yield site.warn(
                rule,
                call,
                f"{_said(change, call, site)}. {change.cure[:1].upper()}{change.cure[1:]}",
            )

    return check


def _gives_indices(call: ast.Call, site: Site) -> bool:
    return has_unknown_arguments(call) or argument(call, "dst_idx", 4) is not None


_INTEGERS = {"nl.int32", "nl.uint32"}
_ON_VECTOR = {
    *("nl.bitwise_and", "nl.bitwise_or", "nl.bitwise_xor", "nl.left_shift", "nl.right_shift"),
    "nl.power",
}
_OPERANDS = (("dst", 0), ("data1", 1), ("data2", 2))


def _check_integers(call: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI2036: integers are computed exactly, unless the call names VectorE."""
    change = _change("integer-engine")
    if is_device_call(call, site, "nisa.tensor_tensor"):
        yield from _check_tensor_tensor(call, site)
    elif is_device_call(call, site, *change.functions) and _adds_integers(call, site):
        said = "nisa.tensor_tensor takes engine=nisa.engine.vector"
        yield site.warn("NKI2036", call, f"{_said(change, call, site)}: {said}")


def _adds_integers(call: ast.Call, site: Site) -> bool:
    """Whether a function of `nl` gets two tiles of integers."""
    return all(_is_integer(argument(call, *operand), site) for operand in (("x", 0), ("y", 1)))


def _check_tensor_tensor(call: ast.Call, site: Site) -> Iterator[Finding]:
    instructions = site.index.alias_for("nisa")
    if instructions is None or not _leaves_engine(call, site):
        return
    if all(_is_integer(argument(call, *operand), site) for operand in _OPERANDS):
        last = [*call.args, *(k.value for k in call.keywords)][-1]
        said = _said(_change("integer-engine"), call, site)
        edit = site.insert_after(last, f", engine={instructions}.engine.vector")
        yield site.finding("NKI2036", call, said, edits=[edit])


def _leaves_engine(call: ast.Call, site: Site) -> bool:
    given = argument(call, "engine", 4)
    operation = site.canonical(argument(call, "op", 3))
    return given is None and not has_unknown_arguments(call) and operation not in _ON_VECTOR


def _is_integer(tile: ast.expr | None, site: Site) -> bool:
    made = allocation_of(tile, site)
    return made is not None and made.dtype in _INTEGERS and made.buffer in (None, "nl.sbuf")


def _goes_on_reducing(call: ast.Call, site: Site) -> bool:
    """Whether the function around the call goes on with a reduction of an earlier instruction."""
    function = site.function_of(call)
    nodes = walk(function.node) if function is not None else []
    return any(site.canonical(n) == "nisa.reduce_cmd.reduce" for n in nodes)


HOOKS = {
    "NKI2036": Hooks(nodes=(ast.Call,), check=_check_integers),
    "NKI4007": Hooks(
        nodes=(ast.Call,), check=_reporting("NKI4007", "quantize-scale", lambda call, site: True)
    ),
    "NKI5007": Hooks(
        nodes=(ast.Call,), check=_reporting("NKI5007", "match-replace-order", _gives_indices)
    ),
    "NKI6015": Hooks(
        nodes=(ast.Call,), check=_reporting("NKI6015", "topk-results", lambda call, site: True)
    ),
    "NKI6024": Hooks(
        nodes=(ast.Call,), check=_reporting("NKI6024", "reduction-registers", _goes_on_reducing)
    ),
}
