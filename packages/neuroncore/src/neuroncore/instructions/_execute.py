"""From a legal call to the function that executes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from neuroncore.enums import OobMode
from neuroncore.errors import SignatureError, Violation, raise_violations
from neuroncore.instructions._accumulate import forgetting
from neuroncore.instructions._limits import check
from neuroncore.instructions._record import Call
from neuroncore.memory import (
    Storage,
    View,
    fill,
    gathered,
    resolve_scalar,
    scatter,
    undefined,
    window,
)
from neuroncore.spec import Spec, row_major

Plan = Callable[..., Any]


def plan(call: Call) -> Plan:
    """Check the call and give the function that executes it on its views; raises what is wrong.

    The function may be kept for every later call with equal specs and attributes: nothing in it
    depends on values or addresses.
    """
    violations = check(call)
    if violations:
        raise_violations(call.record.name, violations)
    executed = _executed(call)
    return forgetting(call, executed) if call.options.psum_tracking == "write" else executed


def _executed(call: Call) -> Plan:
    copied = [n for n, spec in call.tiles.items() if _needs_tile(call, n, spec)]
    if copied:
        return _through_tiles(call, copied)
    execute = bounded(call, call.record.run(call))
    moving = [
        i
        for i, spec in enumerate(call.specs.values())
        if isinstance(spec, Spec) and spec.indirect and spec.indirect.kind == "scalar"
    ]
    skips = call.attrs.get("oob_mode") is OobMode.skip
    return _resolving(execute, moving, skips) if moving else execute


def _needs_tile(call: Call, name: str, spec: Spec) -> bool:
    """Whether no strided array is the operand: gathered elements, results that share elements."""
    if spec.indirect:
        return spec.indirect.kind == "free"
    return spec.repeats and name in call.record.outputs


def _through_tiles(call: Call, copied: list[str]) -> Plan:
    """Executes on tiles with the elements that a view names, and brings results back."""
    dense = {n: _dense(spec) if n in copied else spec for n, spec in call.specs.items()}
    given = call.attrs, call.target, call.options, call.version
    execute = bounded(call, call.record.run(Call(call.record, dense, *given)))
    names = list(call.specs)
    places = [names.index(n) for n in copied]
    results = [names.index(n) for n in copied if n in call.record.outputs]

    def on_tiles(*views: Any) -> None:
        tiles = list(views)
        for i in places:
            tiles[i] = _tile(views[i])
        execute(*tiles)
        for i in results:
            _bring_back(call, views[i], tiles[i].array)

    return on_tiles


def _tile(view: View) -> View:
    """The elements of a view as a tensor of the machine's own, without a notice to watchers."""
    values = gathered(view) if view.spec.indirect else np.array(view.array, order="C")
    spec = _dense(view.spec)
    tile = view.seen(values, spec)
    tile.storage = Storage(values.reshape(-1), spec.shape, spec.dtype, spec.space)
    return tile


def _bring_back(call: Call, view: View, values: np.ndarray) -> None:
    """Results to the elements that an index names, or to elements that several of them share, as
    Options.repeated_destination says.
    """
    if view.spec.indirect:
        scatter(view, values)
        return
    last, shape = zip(
        *((slice(-1, None), 1) if step == 0 else (slice(None), n) for n, step in
          zip(view.shape, view.strides, strict=True)), strict=True,
    )  # fmt: skip
    flat = view.storage.flat.view(view.array.dtype)
    elements = window(flat, view.offset, shape, view.strides)  # `array` may be read-only
    if call.options.repeated_destination == "last":
        elements[...] = values[last]
    else:
        fill(elements, undefined(view.spec.dtype, call.options.uninitialized == "zero"))


def _dense(spec: Any) -> Spec:
    return spec.but(strides=row_major(spec.shape), indirect=None, bank_offset=0)


def _resolving(execute: Plan, moving: list[int], skips: bool) -> Plan:
    def at_current_offsets(*views: Any) -> None:
        fixed = list(views)
        for i in moving:
            found = resolve_scalar(fixed[i], skips)
            if found is None:
                return  # out of bounds under oob_mode.skip: nothing moves
            fixed[i] = found
        execute(*fixed)

    return at_current_offsets


def with_initialization(execute: Plan, call: Call, fresh: list[str]) -> Plan:
    """The plan for operands in never-written memory: poison it, unless all of it is written now."""
    names = list(call.specs)
    starts = "accumulate" in call.record.attrs and call.accumulate is None
    covers = starts or call.record.covers(call)  # nothing was added to fresh PSUM yet
    outputs = set(call.record.outputs) if covers else set()
    claimed = [names.index(n) for n in fresh if n in outputs]
    poisoned = [names.index(n) for n in fresh if n not in outputs]

    def initialize_and_execute(*views: Any) -> None:
        for i in poisoned:
            _view(views[i]).initialize()
        for i in claimed:
            _view(views[i]).claim()
        execute(*views)

    return initialize_and_execute


def _view(value: Any) -> View:
    assert isinstance(value, View)
    return value


LARGEST = int(np.finfo(np.float64).max)
"""Largest int that an instruction takes: immediates pass through floats."""


def is_beyond(value: Any) -> bool:
    """Whether it is an int that no float comes near to."""
    return isinstance(value, int) and not -LARGEST <= value <= LARGEST


def too_large(name: str, value: int) -> Violation:
    """The violation of such an int as the operand called `name`."""
    return Violation(
        SignatureError, f"{name} is a number of {value.bit_length()} bits", name,
        expected=f"numbers up to {float(LARGEST):.3g}", rule="NKI: compile-time constants",
    )  # fmt: skip


def bounded(call: Call, execute: Callable[..., Any]) -> Callable[..., Any]:
    """`execute`, with an error of ours for ints that are too large; without ints, as it is."""
    places = [(i, name) for i, (name, kind) in enumerate(call.specs.items()) if kind is int]
    if not places:
        return execute

    def run(*operands: Any) -> Any:
        try:
            return execute(*operands)
        except OverflowError:
            wrong = next(
                (too_large(n, operands[i]) for i, n in places if is_beyond(operands[i])), None
            )
            if wrong is None:
                raise
        raise wrong.error(
            wrong.what, expected=wrong.expected, rule=wrong.rule, operand=wrong.operand,
            instruction=call.record.name,
        )  # fmt: skip

    return run
