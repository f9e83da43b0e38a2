"""nl functions that make tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from neuroncore.enums import HBM, MemorySpace
from neuroncore.errors import (
    CapacityError,
    MemorySpaceError,
    ShapeError,
    find_place,
)
from neuroncore.machine.launch import running
from neuroncore.spec import as_dtype
from nki_beta1.call.apply import on_chip_shape
from nki_beta1.execution.core import core_of
from nki_beta1.execution.emission import run
from nki_beta1.loops.bytecode import repeated_around
from nki_beta1.loops.ranges import running_loop
from nki_beta1.tensor.allocation import Placement
from nki_beta1.tensor.blocks import Blocks, ParDim, make_blocks
from nki_beta1.tensor.tile import Tile
from nki_beta1.values.attributes import nl_function
from nki_dtypes import DType, cast

_NARROWER = {np.dtype(np.float64): np.float32, np.dtype(np.int64): np.int32}


def par_dim(size: int) -> ParDim:
    """Marks the partition dimension of a shape; block dimensions precede it."""
    return ParDim(size)


@nl_function
def ndarray(
    shape: Sequence[int], dtype: Any, *, buffer: Any = None, name: str = ""
) -> Tile | Blocks:
    """A new tensor with undefined content, in SBUF by default.

    Raises PartitionError for too many partitions, CapacityError for a tensor that does not fit.
    """
    return _make("ndarray", shape, as_dtype(dtype), buffer, name)[0]


@nl_function
def zeros(
    shape: Sequence[int],
    dtype: Any,
    *,
    buffer: Any = None,
    name: str = "",
    lazy_initialization: bool = False,
) -> Tile | Blocks:
    """A new tensor of zeros; writing them lazily saves the device time and changes no value."""
    return _filled("zeros", shape, dtype, 0, buffer, name)


@nl_function
def ones(shape: Sequence[int], dtype: Any, *, buffer: Any = None, name: str = "") -> Tile | Blocks:
    """A new tensor of ones."""
    return _filled("ones", shape, dtype, 1, buffer, name)


@nl_function
def full(
    shape: Sequence[int], fill_value: float, dtype: Any, *, buffer: Any = None, name: str = ""
) -> Tile | Blocks:
    """A new tensor with one value everywhere."""
    return _filled("full", shape, dtype, fill_value, buffer, name)


@nl_function
def zeros_like(a: Any, dtype: Any = None, *, buffer: Any = None, name: str = "") -> Tile | Blocks:
    """Zeros in the shape and, by default, the dtype and memory of a."""
    return _filled("zeros_like", _shape_of(a), _or(dtype, a.dtype), 0, _or(buffer, a.buffer), name)


@nl_function
def empty_like(a: Any, dtype: Any = None, *, buffer: Any = None, name: str = "") -> Tile | Blocks:
    """A new tensor in the shape and, by default, the dtype and memory of a."""
    kind = as_dtype(_or(dtype, a.dtype))
    return _make("empty_like", _shape_of(a), kind, _or(buffer, a.buffer), name)[0]


@nl_function
def shared_constant(constant: Any, dtype: Any = None) -> Tile:
    """An HBM tensor with the values of a NumPy array."""
    array = np.asarray(constant)
    if dtype is not None:  # NumPy's 64 bits are a default, not a wish
        array = array.astype(_NARROWER.get(array.dtype, array.dtype))
    kind = as_dtype(array.dtype if dtype is None else dtype)
    return core_of("shared_constant").constant(cast(array, kind), kind)  # type: ignore[return-value]


@nl_function
def shared_identity_matrix(n: int, dtype: Any = np.uint8) -> Tile:
    """The n x n identity as an HBM tensor."""
    try:
        identity = np.eye(n, dtype=np.float32)
    except (MemoryError, ValueError):
        raise CapacityError(
            "an identity matrix that is too large for this computer",
            got=f"{n} rows and columns",
            operand="n",
            position=0,
            instruction="nl.shared_identity_matrix",
        ) from None
    return shared_constant(identity, dtype)


def as_space(buffer: Any) -> MemorySpace:
    """The memory that `buffer` names; None is SBUF. Raises MemorySpaceError."""
    if buffer is None:
        return MemorySpace.sbuf
    if isinstance(buffer, MemorySpace):
        return buffer
    if isinstance(buffer, Placement):
        return buffer.space
    raise MemorySpaceError(
        f"{buffer!r} is not a memory",
        expected=", ".join(f"nl.{space.name}" for space in MemorySpace),
        operand="buffer",
    )


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def _shape_of(a: Any) -> tuple[int, ...]:
    if not isinstance(a, Blocks):
        return a.shape
    return (*a.shape[: a.depth], ParDim(a.shape[a.depth]), *a.shape[a.depth + 1 :])


def _filled(
    what: str, shape: Sequence[int], dtype: Any, value: float, buffer: Any, name: str
) -> Any:
    kind, space = as_dtype(dtype), as_space(buffer)
    made, is_new = _make(what, shape, kind, buffer, name)
    if isinstance(made, Blocks):
        made.fill(value)
    elif space not in HBM:
        run("memset", {"dst": made, "value": value}, {})
    elif is_new:  # no instruction writes a constant to HBM: it is there from the start
        made.claim()
        number = cast(np.asarray(value, np.float32), kind)
        made.array[...] = number.astype(made.array.dtype)
        made.core.moved(made)
    return made


def _make(
    what: str, shape: Sequence[int], kind: DType, buffer: Any, name: str
) -> tuple[Tile | Blocks, bool]:
    """The tensor, and whether this program of the grid is the one that made it."""
    core, space = core_of(what), as_space(buffer)
    sizes: tuple[Any, ...] = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    at = [n for n, size in enumerate(sizes) if isinstance(size, ParDim)]
    if space in HBM:
        return _in_hbm(what, sizes, kind, space, name)
    if len(at) > 1:
        raise ShapeError("a shape has one partition dimension", got=repr(sizes), operand="shape")
    depth = at[0] if at else 0
    shape = on_chip_shape(sizes[depth:])

    statement = find_place() if isinstance(buffer, Placement) else None

    def make(block: tuple[int, ...]) -> Any:
        if not isinstance(buffer, Placement):
            return core.allocate(shape, kind, space, name)
        return _placed(core, shape, kind, buffer, (statement, block), name)

    if not depth:
        return make(()), True
    core.check_fits(tuple(map(int, shape)), kind, space)
    return make_blocks(sizes[:depth], make, tuple(map(int, shape)), kind, space), True


def _placed(
    core: Any,
    shape: Sequence[int],
    kind: DType,
    buffer: Placement,
    what: tuple[Any, tuple[int, ...]],
    name: str,
) -> Any:
    """The tile of a (statement, block) at its address.

    0.1 ran the body of a loop once. A body that counts addresses up (`addr += size`) leaves the
    memory when it is repeated: the tile then has the address of its first allocation.
    """
    address = buffer.address(what[1], shape, kind)
    try:
        made = core.allocate(shape, kind, buffer.space, name, address)
    except CapacityError:
        if what not in core.placed:
            raise
        return core.allocate(shape, kind, buffer.space, name, core.placed[what])
    core.placed.setdefault(what, address)
    return made


def _at_top_level(what: str, core: Any) -> None:
    """Raise MemorySpaceError where the running program makes an output inside a loop."""
    around = repeated_around()
    loop = around[-1] if around else running_loop(core.iterations)
    if loop is not None:
        raise MemorySpaceError(
            f"a tensor in SHARED_HBM is made inside the loop over {loop}",
            expected="outputs of the kernel, made outside all loops",
            hint="make it before the loop, with an axis for the loop's index",
            operand="buffer",
            instruction=f"nl.{what}",
            rule="NKI 0.1: shared_hbm",
        )


def _in_hbm(
    what: str, sizes: tuple[int, ...], kind: DType, space: MemorySpace, name: str
) -> tuple[Any, bool]:
    launch = running(f"nl.{what}")
    if space is MemorySpace.shared_hbm:
        _at_top_level(what, launch.core)
    if space is not MemorySpace.shared_hbm:
        return launch.core.allocate(sizes, kind, space, name), True
    known = len(launch.shared)
    made = launch.share(lambda: launch.core.allocate(sizes, kind, space, name))
    return made, len(launch.shared) > known
