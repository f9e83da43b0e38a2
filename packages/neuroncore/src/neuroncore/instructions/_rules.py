"""Limits as data, and the limits that several instructions share.

A text of a limit is a template of `c`, the call, and of `it`, the operand or attribute at fault, or
a function of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from neuroncore.activations import ACTIVATIONS
from neuroncore.enums import Engine, MemorySpace
from neuroncore.errors import (
    AttributeValueError,
    DTypeError,
    EngineError,
    KernelError,
    MemorySpaceError,
    PartitionError,
    ShapeError,
    UnsupportedError,
    Violation,
)
from neuroncore.instructions._record import Call, Limit
from neuroncore.spec import Spec

MATH = "NKI: supported math operators"

Text = str | Callable[[Call], str | None] | None


@dataclass(frozen=True, slots=True)
class Rejection:
    """A violation before its call is known.

    `got` left out is the operand or attribute at fault. `section` is one of the instruction's page,
    or a whole reference that begins with NKI.
    """

    error: type[KernelError]
    what: Text
    expected: Text = None
    got: Text = None
    hint: Text = None
    section: str = ""

    def of(self, c: Call, operand: str) -> Violation:
        """The violation of this call, `operand` being at fault."""
        it = getattr(c, operand)

        def text(given: Text) -> str | None:
            if isinstance(given, str):
                return given.format(c=c, it=it, name=operand)
            return None if given is None else given(c)

        shown = f"shape {it!r}" if isinstance(it, Spec) else str(getattr(it, "name", it))
        return Violation(
            self.error, text(self.what) or "", operand, text(self.expected),
            shown if self.got is None else text(self.got), text(self.hint),
            text(reference(self.section, c.record.name)),
        )  # fmt: skip


def reference(section: str, record: str) -> str:
    """The documented rule that a section names."""
    return section if section.startswith("NKI") else f"NKI: {record}, {section}"


def rule(
    condition: Callable[[Call], Any],
    error: type[KernelError],
    operand: str | Callable[[Call], str],
    what: Text,
    /,
    *,
    expected: Text = None,
    got: Text = None,
    hint: Text = None,
    section: str,
    **breaks: Any,
) -> Limit:
    """A rejection of calls for which `condition` does not hold."""
    rejection = Rejection(error, what, expected, got, hint, section)

    def check(call: Call) -> Iterable[Violation]:
        if not condition(call):
            yield rejection.of(call, operand if isinstance(operand, str) else operand(call))

    return Limit(check, breaks)


def each(
    names: Iterable[str],
    condition: Callable[[Call, Spec], Any],
    error: type[KernelError],
    what: Text,
    /,
    *,
    expected: Text,
    got: Text = None,
    hint: Text = None,
    section: str = "shapes",
    **breaks: Any,
) -> Limit:
    """A rejection of every named operand that is a tile for which `condition` does not hold."""
    rejection, operands = Rejection(error, what, expected, got, hint, section), tuple(names)

    def check(call: Call) -> Iterable[Violation]:
        for name in operands:
            if name in call.tiles and not condition(call, call.tiles[name]):
                yield rejection.of(call, name)

    return Limit(check, breaks)


def ways(limit: Limit, *others: Mapping[str, Any]) -> list[Limit]:
    """A limit with further calls that break it: one for each form that a version or a generation
    gives it.
    """
    return [limit, *(Limit(limit.check, breaks) for breaks in others)]


# -- shapes, dtypes, memories, generations --------------------------------------------------------


def same_partitions(first: str, *others: str, **breaks: Any) -> Limit:
    """P of every named operand that is a tile equals P of the first."""
    return each(
        others, lambda c, spec: spec.partitions == getattr(c, first).partitions, PartitionError,
        f"{{name}} has {{it.partitions}} partitions, {first} {{c.{first}.partitions}}",
        expected=f"{{c.{first}.partitions}} partitions",
        got=f"{{name}}: shape {{it!r}}; {first}: shape {{c.{first}!r}}", **breaks,
    )  # fmt: skip


def same_free(first: str, *others: str, **breaks: Any) -> Limit:
    """F (elements per partition) of every named operand equals F of the first."""
    return each(
        others, lambda c, spec: spec.free == getattr(c, first).free, ShapeError,
        f"{{name}} has {{it.free}} elements per partition, {first} {{c.{first}.free}}",
        expected=f"{{c.{first}.free}} elements per partition",
        got=f"{{name}}: shape {{it!r}}; {first}: shape {{c.{first}!r}}",
        hint="operands are not broadcast; use .broadcast, a (P, 1) operand of tensor_scalar, or "
        ".ap with step 0", **breaks,
    )  # fmt: skip


def free_dims(most: int, *names: str, **breaks: Any) -> Limit:
    """From 0.7 on every named operand that is a tile has at most so many free dimensions."""
    return each(
        names, lambda c, spec: c.version < (0, 7) or spec.rank <= most + 1, ShapeError,
        "{name} has {it.rank} dimensions", expected=f"at most {most + 1} from 0.7 on",
        hint="merge two free dimensions: t.flatten_dims(1, 2)", section="NKI 0.7: {c.record.name}",
        version=(0, 7), **breaks,
    )  # fmt: skip


def one_per_partition(data: str, *names: str, **breaks: Any) -> Limit:
    """Every named operand that is a tile is (P, 1), with the partitions of `data`."""
    return each(
        names, lambda c, spec: (spec.free, spec.partitions) == (1, getattr(c, data).partitions),
        ShapeError, "{name} is not one value per partition",
        expected=f"shape ({{c.{data}.partitions}}, 1)", **breaks,
    )  # fmt: skip


def same_dtype(data: str, **breaks: Any) -> Limit:
    """Elements are moved as they are: dst has the dtype of operand `data`."""
    return rule(
        lambda c: c.dst.dtype is getattr(c, data).dtype, DTypeError, "dst",
        f"dst is {{c.dst.dtype}}, {data} {{c.{data}.dtype}}", expected=f"{{c.{data}.dtype}}",
        section="dtypes", **breaks,
    )  # fmt: skip


def not_both_in_psum(first: str, second: str, **breaks: Any) -> Limit:
    """Two-input vector instructions read at most one operand from PSUM."""

    def legal(c: Call) -> bool:
        spaces = [c.tiles[name].space for name in (first, second) if name in c.tiles]
        return spaces != [MemorySpace.psum, MemorySpace.psum]

    return rule(
        legal, MemorySpaceError, second, f"{first} and {second} are both in PSUM",
        expected="at most one input in PSUM", got=f"{{c.{first}!r}} and {{c.{second}!r}}",
        hint="copy one of them to SBUF with nisa.tensor_copy first", section="memories", **breaks,
    )  # fmt: skip


def from_generation(least: int, operand: str, target: str, hint: str | None = None) -> Limit:
    """The instruction came with a generation; `target` is one before, `operand` is pointed at."""
    return rule(
        lambda c: c.target.generation >= least, UnsupportedError, operand,
        "{c.target.name} has no {c.record.name}", expected=f"gen{least} or later",
        got="{c.target.name}", hint=hint, section="generations", target=target,
    )  # fmt: skip


# -- operations -----------------------------------------------------------------------------------


def name_of(c: Call, attr: str) -> str | None:
    """The name of an operation that may be left out."""
    op = getattr(c, attr)
    return None if op is None else op.name


def one_of(attr: str, *names: str, **breaks: Any) -> Limit:
    """The operation or command is one of `names`."""
    return rule(
        lambda c: getattr(c, attr).name in names, AttributeValueError, attr, "{name} {it.name}",
        expected=" or ".join(names), section=attr, **breaks,
    )  # fmt: skip


def arithmetic(attr: str, binary: bool = False, **breaks: Any) -> Limit:
    """The operation computes in float32: no bit operations, and with `binary` two operands."""
    return rule(
        lambda c: not getattr(c, attr).is_bitvec and not (binary and getattr(c, attr).is_unary),
        AttributeValueError, attr, "{it.name} is not an arithmetic operation here",
        expected="a binary arithmetic operation" if binary else "an arithmetic operation",
        section=attr, **breaks,
    )  # fmt: skip


NOT_ON_VECTOR = {"power": "gpsimd", "rsqrt": "gpsimd or scalar"}
"""Operations that VectorE has not, and who has them [NKI: supported math operators, engines]."""


def on_vector(attr: str, **breaks: Any) -> Limit:
    """VectorE has neither power nor rsqrt."""
    return rule(
        lambda c: c.engine is not Engine.vector or name_of(c, attr) not in NOT_ON_VECTOR,
        EngineError, attr, "the vector engine does not do {it.name}",
        expected="an operation of the vector engine",
        got=lambda c: f"{name_of(c, attr)}, on {NOT_ON_VECTOR[getattr(c, attr).name]} only",
        section=f"{MATH}, engines", **breaks,
    )  # fmt: skip


def integers_only(attr: str, /, *names: str, **breaks: Any) -> Limit:
    """Bit operations take integer tiles of one width."""

    def legal(c: Call) -> bool:
        op = getattr(c, attr)
        if op is None or not op.is_bitvec:
            return True
        tiles = [c.tiles[n] for n in names if n in c.tiles]
        return all(s.dtype.is_integer for s in tiles) and len({s.dtype.itemsize for s in tiles}) < 2

    return rule(
        legal, DTypeError, names[0], f"{{c.{attr}.name}} works on raw integer bits",
        expected="integer tiles of one width",
        got=lambda c: ", ".join(f"{n} {c.tiles[n].dtype}" for n in names if n in c.tiles),
        section=f"{MATH}, bitvec", **breaks,
    )  # fmt: skip


def bitvec_on_vector(attr: str, /, **breaks: Any) -> Limit:
    """Bit operations run on VectorE only."""
    return rule(
        lambda c: not getattr(getattr(c, attr), "is_bitvec", False) or c.engine is Engine.vector,
        EngineError, "engine", f"{{c.{attr}.name}} runs on the vector engine only",
        expected="vector", section=f"{MATH}, bitvec", **breaks,
    )  # fmt: skip


def known_to_hardware(attr: str, /, **breaks: Any) -> Limit:
    """Rejects operations that documents call unsupported, or that need a later generation."""

    def legal(c: Call) -> bool:
        op = getattr(c, attr)
        if op is None:
            return True
        documented = op.documented or c.version == (0, 1)
        return documented and op.first_generation <= c.target.generation

    def expected(c: Call) -> str:
        op = getattr(c, attr)
        needs = f" from gen{op.first_generation} on" if op.documented else ""
        return f"a supported math operator{needs}"

    return rule(
        legal, AttributeValueError, attr, "{it.name} is not an operation of {c.target.name}",
        expected=expected,
        hint=lambda c: "multiply by nisa.reciprocal" if name_of(c, attr) == "divide" else None,
        section=MATH, **breaks,
    )  # fmt: skip


def known_to_version(attr: str, /, **breaks: Any) -> Limit:
    """Rejects operations that came with a later version [NKI 0.4: release notes, new opcodes]."""
    in_every = "it is a function of nisa.activation in every version"
    return rule(
        lambda c: getattr(c, attr) is None or getattr(c, attr).since <= c.version,
        AttributeValueError, attr,
        "{it.name} came with NKI {it.since[0]}.{it.since[1]} as an ALU operation",
        expected="an ALU operation of the chosen version",
        got="{it.name} in NKI {c.version[0]}.{c.version[1]}",
        hint=lambda c: in_every if name_of(c, attr) in ACTIVATIONS else None,
        section=MATH, **breaks,
    )  # fmt: skip


def initial_with_load(initial: str, **breaks: Any) -> Limit:
    """The operand that the registers start from is given where, and only where, they are loaded."""
    return rule(
        lambda c: (c.reduce_cmd.name == "load_reduce") == (getattr(c, initial) is not None),
        AttributeValueError, initial, f"{initial} and load_reduce go together",
        expected=lambda c: (
            "a float32 number or (P, 1) tile" if getattr(c, initial) is None else "None"
        ),
        got="{it} with {c.reduce_cmd.name}", section=initial, **breaks,
    )  # fmt: skip
