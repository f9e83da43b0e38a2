"""Limits of every call of every instruction: memories, dtypes, partitions, engines."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from neuroncore.enums import REACH, Engine, MemorySpace
from neuroncore.errors import (
    AccessError,
    DTypeError,
    EngineError,
    ImmutableError,
    MemorySpaceError,
    PartitionError,
    UnsupportedError,
    Violation,
)
from neuroncore.instructions._record import Call
from neuroncore.source_location import find_place
from neuroncore.spec import Spec
from neuroncore.targets import PARTITIONS, QUADRANT
from nki_dtypes import WIDE

ARCHITECTURE = "NKI architecture guide"


class KernelWarning(UserWarning):
    """Something that may not compile for the device, or that documents disagree about."""


def check(call: Call) -> list[Violation]:
    """Every violation of the call, common rules first."""
    found = [v for name, spec in call.tiles.items() for v in _operand(call, name, spec)]
    found += _values(call)
    found += _engine(call)
    if not found:  # the record's own limits may rely on the common ones
        checks = dict.fromkeys(limit.check for limit in call.record.limits)
        found += [v for own in checks for v in own(call)]
    return found


def check_recorded(call: Call) -> list[Violation]:
    """`check` of a call whose kernel has run: it was warned at its own lines."""
    before = _is_silent.set(True)
    try:
        return check(call)
    finally:
        _is_silent.reset(before)


def _operand(call: Call, name: str, spec: Spec) -> Iterator[Violation]:
    operand = call.record.operands[name]
    if spec.space not in operand.spaces:
        yield Violation(
            MemorySpaceError,
            f"{name} is in {spec.space.name.upper()}",
            name,
            expected=" or ".join(sorted(s.name.upper() for s in operand.spaces)),
            got=f"shape {spec!r}",
            hint=_move_hint(spec),
            rule=f"NKI: {call.record.name}, memories",
        )
    if operand.dtypes is not None and spec.dtype not in operand.dtypes:
        yield Violation(
            DTypeError,
            f"{name} is {spec.dtype}",
            name,
            expected=", ".join(sorted(str(d) for d in operand.dtypes)),
            got=f"shape {spec!r}",
            rule=f"NKI: {call.record.name}, dtypes",
        )
    if spec.space.on_chip:
        yield from _partitions(call, name, spec)
    if spec.indirect is not None and spec.indirect.kind == "free":
        yield from _indirection(call, name, spec)
    if operand.writes:
        yield from _output(call, name, spec)


def _output(call: Call, name: str, spec: Spec) -> Iterator[Violation]:
    if not spec.mutable:
        yield Violation(
            ImmutableError,
            f"{name} is read-only",
            name,
            expected="a tensor made with nl.ndarray, or an argument that may be written",
            got=f"shape {spec!r}",
            hint="an argument may be written when its NumPy array is writable "
            "(array.flags.writeable) and shares no memory with another that has to be copied; in "
            "0.1 only when it is declared mutable",
            rule="NKI language guide: kernel parameters",
        )
    rejects = call.options.repeated_destination == "reject"
    if rejects and spec.repeats and spec.indirect is None:
        yield Violation(
            AccessError,
            f"{name} is a broadcast view: several results would share one element",
            name,
            got=f"shape {spec.shape}, strides {spec.strides}",
            rule="NKI: access patterns",
        )


def _indirection(call: Call, name: str, spec: Spec) -> Iterator[Violation]:
    """Tensor indirection: which operands of which generation and version, and where they start."""
    rule, index = f"NKI: {call.record.name}, tensor indirection", spec.indirect
    assert index is not None and index.index is not None
    if name not in call.record.gathers:
        yield Violation(
            AccessError, f"{name} takes no tensor indirection here", name,
            expected=" or ".join(call.record.gathers) or "a view without .indirect",
            got=f"shape {spec!r} at offsets of a tile", hint="copy it with nisa.tensor_copy first",
            rule=rule,
        )  # fmt: skip
    elif call.target.generation < 4 or call.version < (0, 5):
        version = ".".join(map(str, call.version))
        yield Violation(
            UnsupportedError, "tensor indirection", name, expected="gen4, from NKI 0.5 on",
            got=f"NKI {version} on {call.target.name}", rule=rule,
        )  # fmt: skip
    elif _scatters_in_psum(call, name, spec):
        yield Violation(
            MemorySpaceError, f"{name} is scattered in PSUM", name, expected="SBUF on ScalarE",
            got=f"shape {spec!r}", rule=rule,
        )  # fmt: skip
    yield from _index_start(call, name, spec, index.index, rule)


def _index_start(call: Call, name: str, spec: Spec, index: Spec, rule: str) -> Iterator[Violation]:
    """The index tile starts where its operand does, at a quadrant."""
    beside = _beside_index(call, name, spec)
    if index.start % QUADRANT or (beside.space is MemorySpace.sbuf and beside.start != index.start):
        yield Violation(
            PartitionError, f"the index of {name} starts at partition {index.start}", name,
            expected=f"a multiple of {QUADRANT}, as the operand ({beside.start})",
            got=f"index: shape {index!r}", rule=rule,
        )  # fmt: skip


def _scatters_in_psum(call: Call, name: str, spec: Spec) -> bool:
    by_scalar = call.engine is Engine.scalar and spec.space is MemorySpace.psum
    return by_scalar and call.record.operands[name].writes


def _beside_index(call: Call, name: str, spec: Spec) -> Spec:
    """The operand whose partitions the index of `name` has: of a result the first input's."""
    if not call.record.operands[name].writes:
        return spec
    return next((s for n, s in call.tiles.items() if n in call.record.gathers[1:]), spec)


def _values(call: Call) -> Iterator[Violation]:
    """Packed elements are four numbers in a word: only what moves bits takes them. Elements of 64
    bits are taken by DMA that moves them as they are."""
    for name, spec in call.tiles.items():
        if spec.dtype in WIDE and not _moves_64_bits(call, name):
            yield Violation(
                DTypeError, f"{name} is {spec.dtype}: no engine computes with 64 bits", name,
                expected="32 bits, or the same dtype on both sides of a nisa.dma_copy",
                got=f"shape {spec!r}",
                hint="nisa.scalar_load takes a (1, 1) tensor of int64 to compute an address",
                rule="NKI 0.7: nisa.scalar_load, data types",
            )  # fmt: skip
    packed = {name: s for name, s in call.tiles.items() if s.dtype.is_packed}
    if not packed or call.record.moves_bits(call):
        return
    for name, spec in packed.items():
        yield Violation(
            DTypeError,
            f"{name} is {spec.dtype}: an element packs {spec.dtype.lanes} numbers",
            name,
            expected="a dtype with one number per element, or the same dtype on both sides of a "
            "copy",
            got=f"shape {spec!r}",
            rule="NKI: supported data types, packed",
        )


def _moves_64_bits(call: Call, name: str) -> bool:
    if call.record.operands[name].dtypes is not None:
        return True  # the record names what it takes
    return Engine.dma in call.record.engines and call.record.moves_bits(call)


def _move_hint(spec: Spec) -> str:
    if spec.space.on_chip:
        return "copy it with nisa.tensor_copy first"
    return "bring it on chip with nisa.dma_copy first"


def _partitions(call: Call, name: str, spec: Spec) -> Iterator[Violation]:
    count = spec.partitions
    if count > call.target.partitions:
        yield Violation(
            PartitionError,
            f"{name} has {count} partitions",
            name,
            expected=f"at most {call.target.partitions}",
            got=f"shape {spec!r}",
            rule=f"{ARCHITECTURE}: partition dimension",
        )
    if not call.record.operands[name].own_start:
        yield from start_partition(call, name, spec, count)


def start_partition(call: Call, name: str, spec: Spec, count: int) -> Iterator[Violation]:
    """An operand that takes up `count` partitions starts where hardware can address them.

    Options.start_partition says whether that is an error, a warning or nothing.
    """
    step = next((n for n in (QUADRANT, 2 * QUADRANT) if count <= n), PARTITIONS)
    mode = call.options.start_partition
    if spec.start % step == 0 or mode == "ignore":
        return
    what = f"{name} starts at partition {spec.start} with {count} partitions"
    allowed = ", ".join(str(p) for p in range(0, PARTITIONS, step))
    if mode == "warn":  # once for a line, not for each start
        where = f"{name} has {count} partitions and does not start at {allowed}"
        warn_at_kernel(f"{call.record.name}: {where} [{ARCHITECTURE}]")
        return
    yield Violation(
        PartitionError, what, name, expected=f"a start of {allowed}",
        got=f"shape {spec!r}", rule=f"{ARCHITECTURE}: start partition",
    )  # fmt: skip


_shown: dict[str, dict[Any, Any]] = {}
"""By file, the warnings that Python has shown."""
_is_silent = ContextVar("is_silent", default=False)


def warn_at_kernel(text: str) -> None:
    """A KernelWarning at the kernel's line, by Python's filters: once for a line and text."""
    if _is_silent.get():
        return
    place = find_place()
    if place is None:
        warnings.warn(text, KernelWarning, stacklevel=2)
    else:
        shown = _shown.setdefault(place.file, {})
        warnings.warn_explicit(text, KernelWarning, place.file, place.line, registry=shown)


def _engine(call: Call) -> Iterator[Violation]:
    engine = call.engine
    record = call.record
    if engine not in record.engines:
        yield Violation(
            EngineError,
            f"the {engine.name} engine cannot execute it",
            "engine",
            expected=", ".join(e.name for e in record.engines),
            got=engine.name,
            rule=f"NKI: {record.name}, engine",
        )
        return
    for name, spec in call.tiles.items():
        if spec.space in record.operands[name].spaces and spec.space not in REACH[engine]:
            yield Violation(
                EngineError,
                f"the {engine.name} engine does not reach {spec.space.name.upper()} ({name})",
                name,
                expected=" or ".join(sorted(s.name.upper() for s in REACH[engine])),
                got=f"shape {spec!r}",
                rule=f"{ARCHITECTURE}: engine reach",
            )
