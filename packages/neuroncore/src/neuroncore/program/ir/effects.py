"""Effects of a program's call under given values of the loop variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from neuroncore.effects import Effect, Footprint, footprint
from neuroncore.enums import Engine
from neuroncore.instructions import Call as MachineCall
from neuroncore.integers.affine import Affine
from neuroncore.machine.accesses import Touched
from neuroncore.machine.core import NeuronCore
from neuroncore.program.ir.binding import index_stride, machine_call, seen_as, specs_of
from neuroncore.program.ir.nodes import Access, Buffer, Call
from neuroncore.records import record
from neuroncore.surface import DEFAULT_VERSION

_ZERO = Affine()


@record
class BoundEffect:
    """One effect: the footprint with the access's offset at 0, and what an offset is in bytes."""

    effect: Effect
    buffer: str = ""
    offset: Affine = _ZERO
    width: int = 1
    at_zero: Footprint | None = None


@dataclass(frozen=True, slots=True)
class CallEffects:
    """The effects of one call for every iteration; `at` gives them for one.

    `engine` executes the call.
    """

    places: tuple[BoundEffect, ...]
    engine: Engine

    def at(self, values: Mapping[str, int]) -> list[Touched]:
        """Accesses while the loop variables have these `values`; buffers go by name.

        KeyError names a variable without a value.
        """
        return [_touched(place, values) for place in self.places]


def _touched(place: BoundEffect, values: Mapping[str, int]) -> Touched:
    effect = place.effect
    if place.at_zero is None:
        return Touched(effect.touch, effect.operand, effect.operand, (), is_register=True)
    moved = place.at_zero.moved(place.offset.value(values) * place.width)
    return Touched(effect.touch, effect.operand, place.buffer, (moved,))


def call_effects(
    call: Call, buffers: Mapping[str, Buffer], core: NeuronCore, nki: str = DEFAULT_VERSION
) -> CallEffects:
    """The effects of `call`, by its record; `nki` is the version whose rules it follows.

    Where an index on the device decides which rows are meant, they are all rows that an index in
    bounds could name. One buffer that is allocated anew in every iteration has one name here.
    """
    made = machine_call(call, specs_of(call, buffers, core), core, nki)
    return CallEffects(bound_effects(call, made, buffers), made.engine)


def bound_effects(
    call: Call, made: MachineCall, buffers: Mapping[str, Buffer]
) -> tuple[BoundEffect, ...]:
    """The same where the call as the machine's records take it is known."""
    return tuple(_place(effect, call, buffers) for effect in call.record.effects(made))


def _place(effect: Effect, call: Call, buffers: Mapping[str, Buffer]) -> BoundEffect:
    if effect.is_register:
        return BoundEffect(effect)
    name, _, index = effect.operand.partition(".")
    access = call.accesses[name]
    if index:
        assert access.indirect is not None
        access = access.indirect.index
    buffer = buffers[access.buffer]
    width = seen_as(access, buffer).itemsize
    shape, strides = _reachable(access, buffer)
    if name in call.record.rows:
        shape, strides = call.record.rows[name].of(shape, strides)
    at_zero = footprint(0, shape, tuple([s * width for s in strides]), width)
    return BoundEffect(effect, buffer.name, access.offset, width, at_zero)


def _reachable(access: Access, buffer: Buffer) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides of the elements that the access names at any index."""
    if access.indirect is None:
        return access.shape, access.strides
    by_row = access.indirect.kind == "vector"
    shape, strides = access.shape[by_row:], access.strides[by_row:]
    rows, _ = access.indirect.rows(buffer)
    return (rows, *shape), (index_stride(access, buffer), *strides)
