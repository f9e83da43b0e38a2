"""Records of instructions: declared fields, and four narrow functions over specs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from neuroncore.effects import Effect, Rows, reads, writes
from neuroncore.enums import Engine, MaskBehaviour, MemorySpace
from neuroncore.errors import SignatureError, Violation
from neuroncore.options import Options
from neuroncore.spec import Spec
from neuroncore.targets import Target
from neuroncore.work import MicroOp
from nki_dtypes import DType


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor (or number) that an instruction takes.

    `letters` name the dimensions for documentation: P partition, F free, K contraction, M/N output.
    `dtypes` None takes every dtype. `number`: a Python number may stand instead of a tile, `tile`
    False: it must.
    """

    letters: str
    spaces: frozenset[MemorySpace]
    writes: bool = False
    optional: bool = False
    number: bool = False
    tile: bool = True
    dtypes: frozenset[DType] | None = None
    own_start: bool = False
    """Whether a limit of the record says at which partitions it may start."""


def Out(letters: str, spaces: frozenset[MemorySpace], **more: Any) -> Operand:  # noqa: N802
    """An operand that the instruction writes."""
    return Operand(letters, spaces, writes=True, **more)


def In(letters: str, spaces: frozenset[MemorySpace], **more: Any) -> Operand:  # noqa: N802
    """An operand that the instruction reads."""
    return Operand(letters, spaces, **more)


def Number() -> Operand:  # noqa: N802
    """A compile-time number."""
    return Operand("", frozenset(), number=True, tile=False)


class Call:
    """One use of an instruction: specs of its operands and values of its attributes.

    Fields read as attributes: `c.dst` is a Spec (or the type of a number, or None), `c.op` a value.
    """

    __slots__ = ("_effects", "attrs", "options", "record", "specs", "target", "version")

    def __init__(
        self,
        record: Instruction,
        specs: Mapping[str, Spec | type | None],
        attrs: Mapping[str, Any],
        target: Target,
        options: Options | None = None,
        version: tuple[int, int] = (0, 6),
    ) -> None:
        self.record = record
        self.specs = specs
        self.attrs = attrs
        self.target = target
        self.options = options or Options()
        self.version = version
        self._effects: list[Effect] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in self.specs:
            return self.specs[name]
        try:
            return self.attrs[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def engine(self) -> Engine:
        """The engine that executes this call; `unknown` lets the record choose."""
        return self.record.engine_of(self)

    @property
    def effects(self) -> list[Effect]:
        """The effects of this call; computed once."""
        if self._effects is None:
            self._effects = self.record.effects(self)
        return self._effects

    def touched_part(self, name: str, operand: Any) -> Any:
        """The part of the operand called `name` that this call touches: all but for few records."""
        rows = self.record.rows.get(name)
        return operand if rows is None or operand is None else rows.part(operand)

    @property
    def tiles(self) -> dict[str, Spec]:
        """The operands that are tensors here."""
        return {name: s for name, s in self.specs.items() if isinstance(s, Spec)}

    def __repr__(self) -> str:
        parts = [f"{name}={spec!r}" for name, spec in self.specs.items()]
        parts += [f"{name}={value!r}" for name, value in self.attrs.items()]
        return f"{self.record.name}({', '.join(parts)})"


@dataclass(frozen=True, slots=True)
class Limit:
    """One documented restriction: a check, and a call that breaks it (for the tests and the page).

    `breaks` overrides fields of the record's first example; see `example_call`.
    """

    check: Callable[[Call], Iterable[Violation]]
    breaks: Mapping[str, Any] = field(default_factory=dict)

    def target(self, told: str) -> str:
        """The target of that call, where the limit is one of it and `told` does not name it."""
        target = self.breaks.get("target", "")
        return "" if target in told else target


REQUIRED: Any = type("Required", (), {"__repr__": lambda self: "required"})()
"""The default of an attribute that has none."""


@dataclass(frozen=True, slots=True)
class Attr:
    """An attribute: its default (or REQUIRED) and how a given value becomes the record's."""

    default: Any = REQUIRED
    convert: Callable[[Any], Any] = lambda value: value

    def is_default(self, value: Any) -> bool:
        """Whether leaving the attribute out says the same as this converted value."""
        return self.default is not REQUIRED and value == self.convert(self.default)


@dataclass(frozen=True, slots=True)
class Example:
    """Inputs as arrays or spec text, attributes, and the expected output."""

    given: Mapping[str, Any]
    expect: Any = None
    note: str = ""


TableInput = Callable[[Call, Mapping[str, Any]], np.ndarray]
"""From the operands of a call to the float32 numbers that its activation table is asked for."""


def _first_engine(call: Call) -> Engine:
    asked = call.attrs.get("engine", Engine.unknown)
    return call.record.engines[0] if asked is Engine.unknown else asked


def operand_effects(call: Call) -> list[Effect]:
    """Reads of the tiles that the record only reads, and writes of its outputs."""
    outputs = call.record.outputs
    read = (name for name in call.tiles if name not in outputs)
    return reads(*read) + writes(*(name for name in outputs if name in call.tiles))


def _with_indices(effects: Callable[[Call], list[Effect]]) -> Callable[[Call], list[Effect]]:
    """The effects of a record, and reads of the index tiles of its dynamic operands."""

    def all_effects(call: Call) -> list[Effect]:
        found = effects(call)
        indices = [f"{n}.index" for n, s in call.tiles.items() if s.indirect is not None]
        named = {e.operand for e in found}
        return found + reads(*(name for name in indices if name not in named))

    return all_effects


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Instruction:
    """One instruction of the machine, defined once."""

    name: str
    engines: tuple[Engine, ...]
    source: str = ""
    """Where it is documented; left out, under its name in the NKI reference."""
    operands: Mapping[str, Operand]
    attrs: Mapping[str, Attr] = field(default_factory=dict)
    limits: Sequence[Limit]
    effects: Callable[[Call], list[Effect]] = operand_effects
    """What is touched; that the index of a dynamic operand is read need not be said."""
    work: Callable[[Call], list[MicroOp]]
    run: Callable[[Call], Callable[..., Any]]
    """Given the call, the function that executes it on the operands' views, in operand order.

    What it returns is ignored."""
    result: Callable[[Call], tuple[tuple[int, ...], DType, MemorySpace]]
    """Shape, dtype and memory of the destination where 0.1 infers it."""
    mask: MaskBehaviour = MaskBehaviour.unsupported
    examples: Sequence[Example]
    engine_of: Callable[[Call], Engine] = _first_engine
    covers: Callable[[Call], bool] = lambda call: True
    """Whether the call writes every element of its outputs without reading them."""
    chooses: Callable[[Call, Mapping[str, Any]], np.ndarray | None] = lambda call, views: None
    """Which elements of the first output this execution writes, where the call does not cover it
    and values decide: bool that broadcasts to its shape, or None for all that it names. Elements
    that are not chosen are kept, which does not read them."""
    moves_bits: Callable[[Call], bool] = lambda call: False
    """Whether elements are moved as they are, so that packed ones, which have no value, may be; or
    the record itself unpacks them."""
    gathers: tuple[str, ...] = ()
    """Operands that take free elements at the offsets of a tile (.indirect)."""
    rows: Mapping[str, Rows] = field(default_factory=dict)
    """Operands of which some partitions are touched, and which."""

    table_input: TableInput | None = None
    """Where attribute `op` is an activation function: what it is asked for."""

    outputs: tuple[str, ...] = field(init=False)
    """The operands that it writes."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", self.source or f"NKI reference: nki.isa.{self.name}")
        object.__setattr__(self, "effects", _with_indices(self.effects))
        written = (name for name, operand in self.operands.items() if operand.writes)
        object.__setattr__(self, "outputs", tuple(written))

    def attributes(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Every attribute, converted; what is not given has its default.

        Raises SignatureError naming attributes without one, AttributeValueError for a wrong value.
        """
        values = {name: given.get(name, attr.default) for name, attr in self.attrs.items()}
        missing = [name for name, value in values.items() if value is REQUIRED]
        if missing:
            raise SignatureError(
                "nothing is given for " + " and ".join(missing),
                expected=", ".join(f"{name}=…" for name in missing),
                instruction=self.name,
                operand=missing[0],
            )
        return {name: attr.convert(values[name]) for name, attr in self.attrs.items()}

    @property
    def anchor(self) -> str:
        """The operand whose core executes a call: the first output, else the first tile."""
        tiles = [name for name, operand in self.operands.items() if operand.tile]
        return (self.outputs or tiles)[0]

    def __repr__(self) -> str:
        return f"<instruction {self.name}>"
