"""dma_compute: sums of tensors on the DMA engines, also added to rows that an index names.

dst and every source have the same number of elements, paired in row-major order; float32 inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from neuroncore.alu import ALU_OPS, alu_op
from neuroncore.enums import HBM, SBUF, Engine, MemorySpace, OobMode
from neuroncore.errors import AccessError, AttributeValueError, ShapeError, Violation
from neuroncore.instructions._convert import flag, member
from neuroncore.instructions._cost import guessed
from neuroncore.instructions._example_operands import gathering, moving
from neuroncore.instructions._numerics import like, reader, stored, wide, writer
from neuroncore.instructions._record import Attr, Call, Example, In, Instruction, Limit, Out
from neuroncore.instructions._rules import each, rule
from neuroncore.memory import View, dynamic_rows
from neuroncore.memory.dynamic import reject_out_of_bounds
from neuroncore.spec import Spec

RULE = "NKI: dma_compute"
SOURCES = tuple(f"src{n}" for n in range(16))


def _given(c: Call) -> list[str]:
    """The sources that this call has."""
    return [name for name in SOURCES if name in c.tiles]


def _by_rows(c: Call) -> list[str]:
    """The operands whose rows an index names."""
    return [n for n, s in c.tiles.items() if s.indirect is not None and s.indirect.kind == "vector"]


def dma_compute(c: Call) -> Callable[..., None]:
    """dst = Σ sources, added in their order in float32 and rounded once.

    With an index: dst[index] += source, where one source is dst[index] itself, or dst += source
    [index], where one is dst. Rows out of bounds are rejected, or left as they are.
    """
    if _by_rows(c):
        return _scatter(c) if "dst" in _by_rows(c) else _gather(c)
    shape, write = c.dst.shape, writer(c.dst)
    readers = [reader(c.tiles[name], shape) for name in _given(c)]

    def total(dst: View, *sources: View) -> None:
        values = readers[0](sources[0])
        for read, source in zip(readers[1:], sources[1:], strict=False):
            values = values + read(source)
        write(dst, values)

    return total


def _gather(c: Call) -> Callable[..., None]:
    by_rows = SOURCES.index(_by_rows(c)[0])
    rows = (c.tiles[SOURCES[by_rows]].shape[0], -1)
    read, write = reader(c.dst), writer(c.dst)
    widen = wide(c.tiles[SOURCES[by_rows]])

    def add(dst: View, *sources: View) -> None:
        source, other = sources[by_rows], sources[1 - by_rows]
        _reject_another(c, dst, other, SOURCES[1 - by_rows])
        elements, valid = _rows(c, source)
        taken = source.storage.flat.view(source.array.dtype)[elements].reshape(rows)
        values = taken if widen is None else widen(taken)
        held = read(dst).reshape(rows)
        write(dst, np.where(valid[:, None], held + values, held))

    return add


def _scatter(c: Call) -> Callable[..., None]:
    itself = SOURCES.index(next(n for n in _by_rows(c) if n != "dst"))
    shape = c.dst.shape
    read, widen, store = reader(c.tiles[SOURCES[1 - itself]], shape), wide(c.dst), stored(c.dst)

    def add(dst: View, *sources: View) -> None:
        _reject_another(c, dst, sources[itself], SOURCES[itself])
        elements, valid = _rows(c, dst)
        _reject_twice(c, dst, valid)
        flat = dst.storage.flat.view(dst.array.dtype)
        chosen = elements[valid]
        held = flat[chosen]
        values = (held if widen is None else widen(held)) + read(sources[1 - itself])[valid]
        flat[chosen] = store(values)

    return add


def _rows(c: Call, view: View) -> tuple[np.ndarray, np.ndarray]:
    elements, valid = dynamic_rows(view)
    if c.oob_mode is OobMode.error and not valid.all():
        reject_out_of_bounds(view, valid)
    return elements, valid


def _reject_another(c: Call, dst: View, other: View, name: str) -> None:
    """One source of an indirect call is dst itself: the same elements of the same tensor."""
    same = other.storage is dst.storage and other.offset == dst.offset
    if dst.dynamic is not None and other.dynamic is not None:
        one, two = dst.dynamic.index, other.dynamic.index
        same = same and one.storage is two.storage and one.offset == two.offset
    if not same:
        raise AccessError(
            f"{name} is another part of memory than dst", expected="the same view as dst",
            got=f"{other!r} and {dst!r}", operand=name, instruction=c.record.name,
            rule=f"{RULE}, read-modify-write",
        )  # fmt: skip


def _reject_twice(c: Call, dst: View, valid: np.ndarray) -> None:
    assert dst.dynamic is not None
    named = dst.dynamic.index.array.reshape(-1)[valid]
    kept, counts = np.unique(named, return_counts=True)
    if (counts > 1).any():
        raise AccessError(
            f"the index names row {kept[counts > 1][0]} twice", expected="unique indices",
            got=f"{int(counts.max())} times", operand="dst", instruction=c.record.name,
            hint="one of the sums would be lost: add up such rows first",
            rule=f"{RULE}, unique_indices",
        )  # fmt: skip


def _addresses(c: Call) -> Iterable[Violation]:
    dynamic, by_rows = [n for n, s in c.tiles.items() if s.indirect is not None], _by_rows(c)
    if dynamic != by_rows:
        yield Violation(
            AccessError, "an address is computed on the device", next(
                n for n in dynamic if n not in by_rows), expected="compile-time addresses, or a "
            "vector_offset", got="a scalar_offset", hint="copy the part with dma_copy first",
            rule=f"{RULE}, addresses",
        )  # fmt: skip
    elif by_rows and not _is_read_modify_write(c, by_rows):
        yield Violation(
            AccessError, "a vector_offset with these operands", by_rows[0],
            expected="two sources: dst[index] and a tensor of its shape for dst[index] in HBM, or "
            "dst and source[index] for dst in SBUF",
            got=f"{len(_given(c))} sources, vector_offset on {' and '.join(by_rows)}",
            rule=f"{RULE}, read-modify-write",
        )  # fmt: skip
    elif not by_rows and c.oob_mode is OobMode.skip:
        yield Violation(
            AttributeValueError, "oob_mode skip without an index", "oob_mode", expected="error",
            got="skip", rule=f"{RULE}, oob_mode",
        )  # fmt: skip
    if by_rows and not c.unique_indices:
        yield Violation(
            AttributeValueError, "indices that are not unique", "unique_indices", expected="True",
            got="False", rule=f"{RULE}, unique_indices",
        )  # fmt: skip


def _is_read_modify_write(c: Call, by_rows: list[str]) -> bool:
    sources = _given(c)
    if len(sources) != 2:
        return False
    plain = [n for n in sources if n not in by_rows]
    if by_rows[0] == "dst":
        same = [n for n in by_rows[1:] if _looks_like(c.tiles[n], c.dst)]
        return len(same) == len(plain) == 1 and not c.dst.space.on_chip
    return (
        len(by_rows) == 1
        and c.dst.space is MemorySpace.sbuf
        and _looks_like(c.tiles[plain[0]], c.dst)
    )


def _looks_like(a: Spec, b: Spec) -> bool:
    return (a.shape, a.strides, a.dtype, a.space) == (b.shape, b.strides, b.dtype, b.space)


def _scales(value: Any) -> tuple[float, ...] | None:
    return None if value is None else tuple(map(float, value))


def _chooses(c: Call, views: Mapping[str, Any]) -> np.ndarray | None:
    """With oob_mode.skip, the rows whose indices are in bounds."""
    by_rows = _by_rows(c)
    if c.oob_mode is OobMode.error or not by_rows:
        return None
    valid = dynamic_rows(views[by_rows[0]])[1]
    return np.repeat(valid, c.dst.size // len(valid)).reshape(c.dst.shape)


_RAMP = np.arange(32.0).reshape(4, 8)

_ROWS = gathering("float32[64, 8] hbm", "int32[4, 1] sbuf", 4)
_ADDED = {"dst": "float32[4, 8] sbuf", "src0": _ROWS, "src1": "float32[4, 8] sbuf"}

DMA_COMPUTE = Instruction(
    name="dma_compute",
    engines=(Engine.dma,),
    operands={
        "dst": Out("any", HBM | SBUF),
        **{name: In("any", HBM | SBUF, optional=name != "src0") for name in SOURCES},
    },
    attrs={
        "reduce_op": Attr(convert=alu_op),
        "scales": Attr(None, _scales),
        "unique_indices": Attr(True, flag),
        "oob_mode": Attr(OobMode.error, member(OobMode, "oob_mode")),
    },
    limits=[
        each(
            SOURCES, lambda c, spec: spec.size == c.dst.size, ShapeError,
            "{name} has {it.size} elements, dst {c.dst.size}", expected="{c.dst.size} elements",
            got="{it!r} into {c.dst!r}", src1="float32[4, 9] hbm",
        ),
        rule(
            lambda c: c.reduce_op is ALU_OPS["add"],
            AttributeValueError, "reduce_op", "reduce_op {c.reduce_op.name}", expected="nl.add",
            section="reduce_op", reduce_op="maximum",
        ),
        rule(
            lambda c: c.scales is None or c.scales == (1.0,) * len(_given(c)),
            AttributeValueError, "scales", lambda c: f"scales {list(c.scales)}",
            expected=lambda c: f"None, or 1.0 for each of {len(_given(c))} sources",
            hint="multiply with tensor_scalar first", section="scales", scales=[1.0, 2.0],
        ),
        Limit(_addresses, {"oob_mode": OobMode.skip}),
        Limit(_addresses, {"src0": moving("float32[64, 8] hbm", "int32[1, 1] sbuf", 4)}),
        Limit(_addresses, {"src0": _ROWS}),
        Limit(_addresses, _ADDED | {"unique_indices": False}),
    ],
    work=guessed,
    run=dma_compute,
    result=like("src0"),
    covers=lambda c: not _by_rows(c),
    chooses=_chooses,
    examples=[
        Example({"dst": "bfloat16[8, 4] sbuf", "src0": ("hbm", _RAMP), "src1": ("hbm", _RAMP),
                 "reduce_op": "add"}, {"dst": 2 * _RAMP.reshape(8, 4)},
                note="row-major pairing; summed in float32, converted once"),
    ],
)  # fmt: skip
