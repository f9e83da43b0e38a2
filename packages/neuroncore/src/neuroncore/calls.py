"""Builds the functions that kernels call from a version's signature and a record.

Each is generated with the real parameter list, so that Python binds arguments and
`inspect.signature` tells the truth; its body looks up the remembered plan of the operands' specs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from neuroncore._binding import HANDLE, MISSING, Binding, freeze
from neuroncore._binding import Handle as Handle
from neuroncore._caret import find_place
from neuroncore.instructions import Instruction
from neuroncore.instructions._page import describe as describe_record
from neuroncore.memory import View
from neuroncore.observe import Event
from neuroncore.surface import Param, Signature, version_tuple

_TEMPLATE = """\
def {name}({params}, *_extra, **_unknown):
    _call = None
    try:
        if _extra or _unknown: raise KeyError
        _core = {anchor}.core
        if _core.watchers:
            _key = {key}
            _run, _call = _core.plans[_key], _core.calls[_key]
        else:
            _run = _core.plans[{key}]
    except (KeyError, AttributeError, TypeError):
        _run = None
    if _run is None:  # outside the except block: the kernel's error has no context of ours
        return _slow(({names},), _extra, _unknown)
    if _call is None:
        _run({operands})
    else:
        _event = _Event(_call, {{{fields}}}, _find_place(1), {user_name})
        _core.perform(_event, _run, ({operands},))
    return _handle
"""


def make_function(record: Instruction, signature: Signature) -> Callable[..., Any]:
    """`record` as the function that a kernel of `signature.version` calls, destination first."""
    binding = Binding(record, signature)
    tiles = [p for p in signature.params if _is_operand(record, p)]
    ordered = {p.field: p for p in tiles}
    scope = {"_slow": binding, "_M": MISSING, "_View": View, "_freeze": freeze, "_id": binding}
    scope |= {f"_d_{p.name}": p.default for p in signature.params if not p.required}
    scope["_handle"] = HANDLE if version_tuple(signature.version) >= (0, 6) else None
    scope["__name__"] = __name__
    scope |= {"_Event": Event, "_find_place": find_place}
    names = [p.name for p in signature.params]
    values = {f: ordered[f].name if f in ordered else "None" for f in record.operands}
    text = _TEMPLATE.format(
        name=record.name,
        params=", ".join(
            f"{p.name}=_M" if p.required else f"{p.name}=_d_{p.name}" for p in signature.params
        ),
        names=", ".join(names),
        anchor=ordered[record.anchor].name,
        key=", ".join(["_id", *_key(record, signature)]),
        operands=", ".join(values.values()),
        fields=", ".join(f"{f!r}: {value}" for f, value in values.items()),
        user_name="name" if "name" in names else "None",
    )
    exec(compile(text, f"<nki.isa.{record.name} {signature.version}>", "exec"), scope)
    function: Any = scope[record.name]
    function.__signature__ = _inspectable(signature)
    function.__module__ = "nki.isa"
    function.__doc__ = describe_record(record)
    return function


def _inspectable(signature: Signature) -> inspect.Signature:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature(
        [
            inspect.Parameter(
                p.name, kind, default=inspect.Parameter.empty if p.required else p.default
            )
            for p in signature.params
        ]
    )


def _is_operand(record: Instruction, param: Param) -> bool:
    return param.field in record.operands


def _key(record: Instruction, signature: Signature) -> Iterator[str]:
    """What makes a signature: specs of tiles, types of numbers, values of attributes."""
    for p in signature.params:
        operand = record.operands.get(p.field)
        if operand is None:
            if p.name != "name":
                yield f"_freeze({p.name}) if {p.name}.__class__ is list else {p.name}"
        elif not operand.tile:
            yield f"{p.name}.__class__"
        elif operand.number or operand.optional:
            yield f"{p.name}.spec if isinstance({p.name}, _View) else {p.name}.__class__"
        else:
            yield f"{p.name}.spec"
