"""What dma_transpose rejects, by form, dge_mode and version."""

from __future__ import annotations

from collections.abc import Iterable

from neuroncore.enums import DgeMode, MemorySpace, OobMode
from neuroncore.errors import (
    AttributeValueError,
    DTypeError,
    MemorySpaceError,
    ShapeError,
    UnsupportedError,
    Violation,
)
from neuroncore.instructions._limits import warn_at_kernel
from neuroncore.instructions._record import Call
from neuroncore.spec import Spec
from nki_dtypes import uint32

RULE = "NKI: dma_transpose"
AXES = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}


def transposed_shape(c: Call) -> tuple[int, ...]:
    """The shape of src, transposed."""
    return tuple(c.src.shape[axis] for axis in AXES[c.src.rank])


def gathers(c: Call) -> bool:
    """Whether src has a vector offset: the indirect form."""
    return c.src.indirect is not None and c.src.indirect.kind == "vector"


def shapes_fit(c: Call) -> Iterable[Violation]:
    """dst is src transposed, by the axes that its rank has."""
    rank = c.src.rank
    if rank not in AXES:
        yield Violation(
            ShapeError, f"src has {rank} dimensions", "src", expected="2, 3 or 4",
            got=f"shape {c.src!r}", rule=f"{RULE}, axes",
        )  # fmt: skip
        return
    if c.axes not in (None, AXES[rank]):
        yield Violation(
            AttributeValueError, f"axes {c.axes} for {rank} dimensions", "axes",
            expected=f"None or {AXES[rank]}", got=str(c.axes), rule=f"{RULE}, axes",
        )  # fmt: skip
    wanted, got = transposed_shape(c), c.dst.shape
    padded = c.version < (0, 4) and _dense(wanted) == _dense(got)  # lower ranks were padded
    if got != wanted and not padded:
        yield Violation(
            ShapeError, f"dst has shape {got}", "dst",
            expected=f"{wanted}, the shape of src transposed by {AXES[rank]}",
            got=f"{c.src!r} into {c.dst!r}",
            hint="from 0.4 on the rank counts too: use dst.reshape or .ap",
            rule=f"{RULE}, shapes",
        )  # fmt: skip


def _dense(shape: tuple[int, ...]) -> list[int]:
    return [n for n in shape if n != 1]


def _two_bytes(c: Call, why: str) -> Iterable[Violation]:
    if c.src.dtype.itemsize != 2:
        yield Violation(
            DTypeError, f"src is {c.src.dtype}", "src", expected=f"a 2-byte dtype for {why}",
            got=f"shape {c.src!r}", rule=f"{RULE}, dtypes",
        )  # fmt: skip


def is_direct(c: Call) -> Iterable[Violation]:
    """Without a vector offset: which dge_mode takes which shapes."""
    if gathers(c) or c.dge_mode is DgeMode.unknown:
        return
    if c.dge_mode is DgeMode.none and c.options.transpose_dge_none != "error":
        if c.options.transpose_dge_none == "warn":
            warn_at_kernel(f"dma_transpose: dge_mode none is not a documented value [{RULE}]")
        return
    if c.dge_mode is not DgeMode.hwdge:
        yield Violation(
            AttributeValueError, f"dge_mode {c.dge_mode.name} without a vector offset", "dge_mode",
            expected="unknown or hwdge", got=c.dge_mode.name, rule=f"{RULE}, direct",
        )  # fmt: skip
        return
    if c.target.generation < 3:
        yield Violation(
            UnsupportedError, f"{c.target.name} has no hardware descriptor generation", "dge_mode",
            expected="gen3 or later", got=f"hwdge on {c.target.name}", rule=f"{RULE}, dge_mode",
        )  # fmt: skip
    yield from _two_bytes(c, "hwdge")
    if not _fits_hwdge(c):
        yield Violation(
            ShapeError, f"hwdge does not transpose {c.src.shape}", "src", expected=_hwdge_shapes(c),
            got=f"shape {c.src!r}", hint="leave dge_mode to the compiler", rule=f"{RULE}, direct",
        )  # fmt: skip


def _fits_hwdge(c: Call) -> bool:
    first, last = c.src.shape[0], c.src.shape[-1]
    if c.version < (0, 6):
        return first == 16 and last % 128 == 0
    if c.src.rank == 2:
        return first == 16 and last <= 128
    return first in {1, 2, 4, 8, 16} and first * c.src.shape[-2] % 16 == 0 and last <= 128


def _hwdge_shapes(c: Call) -> str:
    if c.version < (0, 6):
        return "shape[0] 16 and shape[-1] a multiple of 128"
    first = "16" if c.src.rank == 2 else "1, 2, 4, 8 or 16, times shape[-2] a multiple of 16"
    return f"shape[0] {first}; shape[-1] at most 128"


def is_indirect(c: Call) -> Iterable[Violation]:
    """With a vector offset: generation, dge_mode, shapes of src and of the index tile."""
    if not gathers(c):
        return
    wrong = f"{RULE}, indirect"
    if c.target.generation < 3:
        yield Violation(
            UnsupportedError, f"{c.target.name} does not gather while it transposes", "src",
            expected="gen3 or later", got=c.target.name, rule=wrong,
        )  # fmt: skip
    if c.dge_mode not in (DgeMode.unknown, DgeMode.swdge):
        yield Violation(
            AttributeValueError, f"{c.dge_mode.name} does not take a vector offset", "dge_mode",
            expected="unknown or swdge", got=c.dge_mode.name, rule=wrong,
        )  # fmt: skip
    yield from _two_bytes(c, "a gather")
    if c.src.space.on_chip:
        yield Violation(
            MemorySpaceError, f"src is in {c.src.space.name.upper()}", "src", expected="HBM",
            got=f"shape {c.src!r}", rule=wrong,
        )  # fmt: skip
    if not _source_fits(c):
        last = "128" if c.version < (0, 4) else "at most 128"
        ranks = "3-D, " if c.version == (0, 2) else ""
        yield Violation(
            ShapeError, f"src has shape {c.src.shape}", "src",
            expected=f"{ranks}shape[0] a multiple of 16, shape[-1] {last}, and in 4-D shape[1] or "
            "shape[2] 1",
            got=f"shape {c.src!r}", rule=wrong,
        )  # fmt: skip
    index: Spec = c.src.indirect.index
    if not _index_fits(c, index):
        columns = "1" if c.version == (0, 2) else "1, or any with 128 partitions"
        yield Violation(
            ShapeError, f"the index tile is {index!r}", "src",
            expected=f"uint32 in SBUF, 2-D, 16 to 128 partitions in steps of 16, columns {columns}",
            got=repr(index), rule=wrong,
        )  # fmt: skip


def _source_fits(c: Call) -> bool:
    shape = c.src.shape
    fits = shape[0] % 16 == 0 and shape[-1] <= 128
    fits = fits and (len(shape) < 4 or 1 in shape[1:3])
    if c.version < (0, 4):
        fits = fits and shape[-1] == 128
    return fits and (c.version != (0, 2) or len(shape) == 3)


def _index_fits(c: Call, index: Spec) -> bool:
    rows = index.partitions
    fits = index.dtype is uint32 and index.space is MemorySpace.sbuf and index.rank == 2
    fits = fits and 16 <= rows <= 128 and rows % 16 == 0
    return fits and (index.free == 1 or (rows == 128 and c.version != (0, 2)))


def skipping(c: Call) -> bool:
    """oob_mode.skip goes with a dynamic src: a vector offset, from 0.5 on a scalar one too."""
    dynamic = c.src.indirect
    return c.oob_mode is OobMode.error or (
        dynamic is not None and (dynamic.kind == "vector" or c.version >= (0, 5))
    )
