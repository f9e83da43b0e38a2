"""`nl` functions that move, multiply, draw and print tiles, and the predicates on memories."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.errors import (
    DTypeError,
    MemorySpaceError,
    ShapeError,
    SignatureError,
    UnsupportedError,
)
from neuroncore.machine.launch import running
from neuroncore.machine.loop_trace import act
from neuroncore.memory import View
from neuroncore.notes import note_without_effect
from neuroncore.spec import as_dtype
from nki_beta2.nl.arithmetic import copy, isa, new, scalar
from nki_beta2.nl.device_loops import in_order
from nki_dtypes import cast, finfo, float32, uint32

# -- between memories -----------------------------------------------------------------------------


def load(src: View, dtype: Any = None) -> View:
    """A new SBUF tile with the elements of a slice in HBM."""
    _in_memory(src, "src", "load", "HBM", not src.spec.space.on_chip)
    out = new(src.shape, dtype or src.dtype)
    isa("dma_copy")(out, src)
    return out


def store(dst: View, value: View) -> None:
    """Write an SBUF tile to a slice in HBM."""
    _in_memory(dst, "dst", "store", "HBM", not dst.spec.space.on_chip)
    _in_memory(value, "value", "store", "SBUF", value.spec.space is MemorySpace.sbuf)
    isa("dma_copy")(dst, value)


def load_transpose2d(src: View, dtype: Any = None) -> View:
    """A new SBUF tile with a slice in HBM whose two dimensions are exchanged."""
    _in_memory(src, "src", "load_transpose2d", "HBM", not src.spec.space.on_chip)
    _two_dimensions(src, "load_transpose2d")
    return load(View.permute(src, (1, 0)), dtype)


def copy_before_0_6(x: View, dtype: Any = None) -> View:
    """A copy in the memory of x, by the scalar engine: through float32."""
    out = new(x.shape, dtype or x.dtype, x.spec.space)
    isa("activation")(out, "copy", x)
    return out


def transpose(x: View, dtype: Any = None) -> View:
    """x with partitions and free elements exchanged, in PSUM; both are 128 at most."""
    _two_dimensions(x, "transpose")
    out = new((x.shape[1], x.shape[0]), x.dtype, MemorySpace.psum)
    isa("nc_transpose")(out, x)
    kind = x.dtype if dtype is None else as_dtype(dtype)
    if kind is x.dtype:
        return out
    converted = new(out.shape, kind, MemorySpace.psum)
    isa("tensor_copy")(converted, out)
    return converted


def matmul(x: View, y: View, transpose_x: bool = False) -> View:
    """x @ y, or x.T @ y with transpose_x, as float32 in PSUM."""
    _two_dimensions(x, "matmul")
    stationary = x if transpose_x else copy(transpose(x))
    out = new((stationary.shape[1], *y.shape[1:]), float32, MemorySpace.psum)
    isa("nc_matmul")(out, stationary, y)
    return out


def matmul_up_to_0_4(x: View, y: View, transpose_x: bool = False) -> View:
    """x.T @ y, as float32 in PSUM; x @ y is a known issue of 0.3 and 0.4."""
    if transpose_x:
        return matmul(x, y, True)
    raise UnsupportedError(
        "a product without transpose_x", expected="transpose_x=True", got="transpose_x=False",
        hint="give x.T: nl.transpose(x), copied to SBUF", operand="transpose_x", position=2,
        rule="NKI 0.3 release notes, known issues: nl.matmul",
    )  # fmt: skip


def gather_flattened(data: View, indices: View, axis: int = 0, dtype: Any = None) -> View:
    """data[p].flat[indices[p, …]] for every partition p; indices are uint32."""
    if axis != 0:
        raise UnsupportedError(
            f"axis={axis!r}", expected="0", operand="axis", position=2,
            hint="no document says what another axis means", rule="NKI: nl.gather_flattened",
        )  # fmt: skip
    out = new(indices.shape, data.dtype)
    isa("nc_n_gather")(out, data, indices)
    return out if dtype is None else copy(out, dtype)


def shared_identity_matrix(n: int, dtype: Any = "uint8", dst: View | None = None) -> View:
    """The (n, n) identity in SBUF: a new tile, or `dst`, loaded from a constant in HBM."""
    kind = as_dtype(dtype, "dtype", 1)
    whole = isinstance(n, (int, np.integer)) and not isinstance(n, bool)
    if not whole or n < 1:
        raise ShapeError(
            f"an identity matrix of {n!r} rows"[:80], expected="a positive int", operand="n",
            position=0, rule="NKI: nl.shared_identity_matrix",
        )  # fmt: skip
    out = new((int(n), int(n)), kind) if dst is None else dst
    core = running("nl.shared_identity_matrix").core
    isa("dma_copy")(out, core.constant(cast(np.eye(n, dtype=np.float32), kind), kind))
    return out


def shared_identity_matrix_of_0_2(n: int, dtype: Any = "uint8") -> View:
    """The (n, n) identity in SBUF, loaded from a constant in HBM."""
    return shared_identity_matrix(n, dtype)


# -- drawing --------------------------------------------------------------------------------------


def rand(shape: Any, dtype: Any, buffer: Any = MemorySpace.sbuf, name: str = "") -> View:
    """A new tile of uniform numbers in [0, 1): multiples of 2^-p, for dtype's p bits of precision.

    The streams are reproducible and not hardware's, whose order no document prints.
    """
    kind = as_dtype(dtype, "dtype", 1)
    if not kind.is_float or kind.lanes > 1:
        raise DTypeError(
            f"nl.rand gives no {kind}", expected="a floating-point dtype", operand="dtype",
            position=1, rule="NKI: nl.rand",
        )  # fmt: skip
    precision = 1 - round(np.log2(float(finfo(kind).eps)))
    if not isinstance(buffer, MemorySpace) or not buffer.on_chip:
        raise MemorySpaceError(
            f"random numbers in {buffer!r}", expected="nl.sbuf or nl.psum", operand="buffer",
            position=2, rule="NKI: nl.rand",
        )  # fmt: skip
    out = running("nl.rand").core.allocate(shape, kind, buffer, name)
    words = new(out.shape, uint32)
    isa("rng")(words)
    whole = scalar(words, "right_shift", 32 - precision, uint32)
    isa("tensor_scalar")(out, whole, "multiply", 2.0**-precision)
    return out


def dropout(x: View, rate: Any, dtype: Any = None) -> View:
    """x with random elements set to 0, each with probability `rate`; nothing is rescaled."""
    out = new(x.shape, x.dtype)
    isa("dropout")(out, x, rate)
    return out if dtype is None else copy(out, dtype)


def random_seed(seed: View) -> None:
    """Start the random generator anew with the (1, 1) tile `seed`, of 32 bits."""
    if not isinstance(seed, View):
        raise SignatureError(
            f"seed cannot be a {type(seed).__name__}", expected="a (1, 1) tile of 32 bits",
            got=repr(seed)[:80], hint="nl.full((1, 1), seed, dtype=nl.int32)", operand="seed",
            position=0, rule="NKI: nl.random_seed",
        )  # fmt: skip
    isa("set_rng_seed")(seed)


# -- looking --------------------------------------------------------------------------------------


def device_print(print_prefix: str, tensor: View) -> None:
    """Print a tensor in SBUF or HBM when the kernel runs: its shape, dtype, memory, elements."""
    if not isinstance(print_prefix, str):
        note_without_effect(
            f"print_prefix={print_prefix!r}"[:80], "it is printed as str() gives it",
            "NKI: nl.device_print",
        )  # fmt: skip
    _in_memory(
        tensor, "tensor", "device_print", "SBUF or HBM", tensor.spec.space is not MemorySpace.psum
    )
    core = running("nl.device_print").core
    core.need_values()

    def show() -> None:
        tensor.initialize()
        core.shown(tensor)
        print(print_prefix, repr(tensor))
        print(tensor.array)

    act(core, show)


def _memory(name: str, *spaces: MemorySpace) -> Callable[[Any], bool]:
    def predicate(buffer: Any) -> bool:
        if not isinstance(buffer, MemorySpace):
            raise MemorySpaceError(
                f"buffer={buffer!r} is not a memory"[:80], expected="nl.sbuf, t.buffer, …",
                operand="buffer", position=0, rule=f"NKI: nl.{name}",
            )  # fmt: skip
        return buffer in spaces

    predicate.__name__ = predicate.__qualname__ = name
    predicate.__doc__ = f"Whether a memory is {' or '.join(s.name for s in spaces)}."
    return predicate


_HBM = (MemorySpace.hbm, MemorySpace.private_hbm, MemorySpace.shared_hbm)
PREDICATES = {
    "is_sbuf": _memory("is_sbuf", MemorySpace.sbuf),
    "is_psum": _memory("is_psum", MemorySpace.psum),
    "is_hbm": _memory("is_hbm", *_HBM),
    "is_on_chip": _memory("is_on_chip", MemorySpace.sbuf, MemorySpace.psum),
}


@contextmanager
def no_reorder() -> Iterator[None]:
    """`with nl.no_reorder():` instructions keep their order, as they always do here.

    Loops with a register as bound are errors inside.
    """
    held = in_order.set(True)
    try:
        yield
    finally:
        in_order.reset(held)


def _in_memory(view: View, operand: str, name: str, expected: str, fits: bool) -> None:
    if fits:
        return
    raise MemorySpaceError(
        f"{operand} is in {view.spec.space.name.upper()}", expected=expected, got=repr(view),
        hint="nisa.tensor_copy moves tiles between PSUM and SBUF, nisa.dma_copy to and from HBM",
        operand=operand, rule=f"NKI: nl.{name}",
    )  # fmt: skip


def _two_dimensions(view: View, name: str) -> None:
    if view.ndim != 2:
        raise ShapeError(
            f"a tile of {view.ndim} dimensions", expected="2", got=repr(view), operand="x",
            position=0, rule=f"NKI: nl.{name}",
        )  # fmt: skip


MOVES = (load, store, load_transpose2d, transpose, gather_flattened, rand, dropout, random_seed,
         no_reorder)  # fmt: skip
"""What every version from 0.3 on has."""
