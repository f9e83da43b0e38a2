"""Builds the functions that kernels call from a version's signature and a record.

Each is generated with the real parameter list, so that Python binds arguments and
`inspect.signature` is right; its body finds the remembered plan of the operands' specs.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import Enum
from typing import Any

from neuroncore.errors import KernelError, SignatureError
from neuroncore.instructions import Instruction
from neuroncore.isa.binding import MISSING, Binding, freeze
from neuroncore.isa.handles import HANDLES_SINCE, handle_at
from neuroncore.isa.handles import Handle as Handle
from neuroncore.isa.handles import handle_of as handle_of
from neuroncore.isa.page import docstring
from neuroncore.machine.observe import Event
from neuroncore.machine.scalars import SCALAR_FUNCTIONS, with_destination
from neuroncore.memory import View
from neuroncore.source_location import find_place
from neuroncore.surface import REQUIRED, Param, Signature, version_tuple

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
    return {handle}
"""


_SCOPE = {
    "_M": MISSING, "_View": View, "_freeze": freeze, "_Event": Event, "_find_place": find_place,
    "_handle_at": handle_at, "_frame": sys._getframe, "__name__": __name__,
}  # fmt: skip


def make_function(
    record: Instruction, signature: Signature, returns_handle: bool | None = None
) -> Callable[..., Any]:
    """`record` as the function that a kernel of `signature.version` calls, destination first.

    `returns_handle` None: as the version has it.
    """
    if returns_handle is None:
        returns_handle = version_tuple(signature.version) >= HANDLES_SINCE
    if any(p.more for p in signature.params):
        return _of_a_list(record, signature, returns_handle)
    if record.name in SCALAR_FUNCTIONS:
        on_cells = _generated(record, with_destination(signature), returns_handle)
        return _shown(SCALAR_FUNCTIONS[record.name](on_cells), record, signature)
    return _shown(_generated(record, signature, returns_handle), record, signature)


def _generated(
    record: Instruction, signature: Signature, returns_handle: bool
) -> Callable[..., Any]:
    binding = Binding(record, signature, returns_handle)
    ordered = {p.field: p for p in signature.params if p.field in record.operands}
    scope = _SCOPE | {"_slow": binding, "_id": binding}
    scope |= {f"_d_{p.name}": p.default for p in signature.params if not p.required}
    text = _source(record, signature, ordered, returns_handle)
    exec(compile(text, f"<nki.isa.{record.name} {signature.version}>", "exec"), scope)
    made: Any = scope[record.name]
    return made


def _shown(function: Any, record: Instruction, signature: Signature) -> Callable[..., Any]:
    """The function with the signature, module and page of its record."""
    function.__signature__ = _inspectable(signature)
    function.__module__ = "nki.isa"
    function.__doc__ = docstring(record)
    return function


def _source(
    record: Instruction, signature: Signature, ordered: dict[str, Param], returns_handle: bool
) -> str:
    """The text of the function; `ordered` are the parameters of operands, by field."""
    names = [p.name for p in signature.params]
    values = {f: ordered[f].name if f in ordered else "None" for f in record.operands}
    return _TEMPLATE.format(
        name=record.name,
        params=", ".join(f"{p.name}={_default(p)}" for p in signature.params),
        names=", ".join(names),
        anchor=ordered[record.anchor].name,
        key=", ".join(["_id", *_key(record, signature)]),
        operands=", ".join(values.values()),
        fields=", ".join(f"{f!r}: {value}" for f, value in values.items()),
        handle="_handle_at(_frame(1))" if returns_handle else "None",
        user_name="name" if "name" in names else "None",
    )


def _default(param: Param) -> str:
    return "_M" if param.required else f"_d_{param.name}"


def _of_a_list(
    record: Instruction, signature: Signature, returns_handle: bool
) -> Callable[..., Any]:
    """The function of a signature with a parameter that takes a list of operands."""
    (position,) = (i for i, p in enumerate(signature.params) if p.more)
    taken = signature.params[position]
    spread = tuple(
        Param(field, field, REQUIRED if n == 0 else None) for n, field in enumerate(taken.fields)
    )
    params = (*signature.params[:position], *spread, *signature.params[position + 1 :])
    ordered = tuple(sorted(params, key=lambda p: not p.required))
    single = make_function(record, replace(signature, params=ordered), returns_handle)
    shown = _inspectable(signature)
    places = {p.name: i for i, p in enumerate(signature.params)}

    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            given = shown.bind(*args, **kwargs).arguments
        except TypeError:  # what is wrong is said by the function of single operands
            return single(*args, **kwargs)
        elements = given.pop(taken.name)
        if not isinstance(elements, (list, tuple)) or not 1 <= len(elements) <= len(spread):
            raise SignatureError(
                f"{taken.name} is not a list of operands", expected=f"1 to {len(spread)} tensors",
                got=f"{len(elements)} of them" if isinstance(elements, (list, tuple))
                else type(elements).__name__,
                operand=taken.name, position=position, instruction=record.name,
                rule=f"NKI {signature.version}: {signature}",
            )  # fmt: skip
        try:
            return single(**given, **dict(zip(taken.fields, elements, strict=False)))
        except KernelError as wrong:
            wrong.operand = taken.name if wrong.operand in taken.fields else wrong.operand
            wrong.position = places.get(wrong.operand or "", wrong.position)
            raise

    function.__signature__ = shown  # type: ignore[attr-defined]
    function.__name__, function.__module__ = record.name, "nki.isa"
    function.__qualname__, function.__doc__ = f"nisa.{record.name}", single.__doc__
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


def _key(record: Instruction, signature: Signature) -> Iterator[str]:
    """The parts of a signature: specs of tiles, types of numbers, values of attributes."""
    for p in signature.params:
        operand = record.operands.get(p.field)
        if operand is None:
            if isinstance(p.default, (bool, Enum)):
                yield p.name  # a list is wrong there, and found so by its missing hash
            elif p.name != "name":
                yield f"_freeze({p.name}) if {p.name}.__class__ is list else {p.name}"
        elif not operand.tile:
            yield f"{p.name}.__class__"
        elif operand.number or operand.optional:
            yield f"{p.name}.spec if isinstance({p.name}, _View) else {p.name}.__class__"
        else:
            yield f"{p.name}.spec"
