"""`nki.language` of a version: tensors, dtypes, buffers, loops, program ids, operation names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from neuroncore.calls import make_function
from neuroncore.core import as_dtype
from neuroncore.engines import Space
from neuroncore.errors import KernelError, LaunchError, MemorySpaceError, UnsupportedError
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.launch import running
from neuroncore.memory import View, ds
from neuroncore.surface import signature, version_tuple
from nki_beta2._arithmetic import is_number
from nki_beta2._constants import make_shared_constant
from nki_beta2._jit import Language
from nki_beta2._loops import loops
from nki_beta2._operations import TileFunction, operations
from nki_beta2._sizes import tile_size
from nki_beta2._tensor import tensor_class
from nki_dtypes import ALL, DType

_BUFFERS = {
    "sbuf": Space.sbuf,
    "psum": Space.psum,
    "hbm": Space.private_hbm,
    "private_hbm": Space.private_hbm,
    "shared_hbm": Space.shared_hbm,
}


class NKIObject:
    """Base of the classes that kernel code may define."""


def language_contents(language: Language) -> dict[str, Any]:
    """Everything `nki.language` offers in this version and the machine models."""
    contents = operations(language)
    contents |= {d.name: d for d in ALL if version_tuple(d.since) <= language.version}
    contents |= _BUFFERS
    contents |= _creation(language)
    contents |= _programs() | loops(language)
    contents |= {name: _loop(name) for name in ("affine_range", "sequential_range", "static_range")}
    contents |= {
        "ds": ds,
        "tile_size": tile_size(language),
        "NKIObject": NKIObject,
        "NkiTensor": tensor_class(language.choice.nki),
        "MemoryRegion": Space,
    }
    if language.version == (0, 3):
        contents["range"] = _loop("range")
    if language.version >= (0, 6):
        contents["DType"] = DType
    for name, value in contents.items():
        if isinstance(value, FunctionType) and value is not ds:
            value.__qualname__ = f"nl.{name}"  # how Python's own complaints will call it
    return contents


# -- creating tensors -----------------------------------------------------------------------------


def _creation(language: Language) -> dict[str, Callable[..., Any]]:
    memset_signature = signature("memset", language.choice.nki)
    assert memset_signature is not None
    memset = make_function(INSTRUCTIONS["memset"], memset_signature)

    def ndarray(
        shape: Sequence[int],
        dtype: Any,
        buffer: Any = Space.sbuf,
        name: str = "",
        address: tuple[int, int] | None = None,
    ) -> View:
        """A new tensor with undefined content; dimension 0 is the partition dimension on chip.

        `address` = (partition, offset in each partition), in the unit of Options.address_unit. The
        stubs have it from 0.3 on; the migration guide of 0.2 uses it already.
        Raises KernelError when no such tensor can exist.
        """
        launch = running("nl.ndarray")
        space = _space(language, buffer)
        if address is not None and not space.on_chip:
            raise UnsupportedError(
                "address= of a tensor in " + space.name.upper(),
                hint="address is for SBUF and PSUM tensors",
            )
        if space is Space.shared_hbm:
            made = launch.share(lambda: launch.core.allocate(shape, dtype, space, name))
            return _same_in_every_program(made, shape, dtype)
        if address is not None and launch.core.options.address_unit == "elements":
            address = _in_bytes(address, dtype)
        return launch.core.allocate(shape, dtype, space, name, address)

    def full(
        shape: Sequence[int],
        fill_value: float,
        dtype: Any,
        buffer: Any = Space.sbuf,
        name: str = "",
    ) -> View:
        """A new tensor with `fill_value` everywhere."""
        tensor = ndarray(shape, dtype, buffer, name)
        if as_dtype(dtype).is_integer and isinstance(fill_value, float) and fill_value % 1 == 0:
            fill_value = int(fill_value)
        if tensor.buffer.on_chip:
            memset(tensor, fill_value)
        elif tensor.storage.fresh:  # shared, and a program before this one may have filled it
            staged = ndarray((1, 1), dtype)
            memset(staged, fill_value)
            tensor.settle()
            tensor.array[...] = staged.array[0, 0]
            tensor.core.moved(tensor)
        return tensor

    def zeros(shape: Sequence[int], dtype: Any, buffer: Any = Space.sbuf, name: str = "") -> View:
        """A new tensor filled with zeros."""
        return full(shape, 0, dtype, buffer, name)

    def ones(shape: Sequence[int], dtype: Any, buffer: Any = Space.sbuf, name: str = "") -> View:
        """A new tensor filled with ones."""
        return full(shape, 1, dtype, buffer, name)

    made = {"ndarray": ndarray, "zeros": zeros}
    made["shared_constant"] = make_shared_constant(language)
    if language.version >= (0, 3):
        made |= {"full": full, "ones": ones} | _like(ndarray, zeros)
    return made


def _in_bytes(address: Any, dtype: Any) -> Any:
    """An address in elements of a dtype; what is none is left for the machine to refuse."""
    if isinstance(address, (tuple, list)) and len(address) == 2 and is_number(address[1]):
        return address[0], address[1] * as_dtype(dtype).itemsize
    return address


def _like(
    ndarray: Callable[..., View], zeros: Callable[..., View]
) -> dict[str, Callable[..., Any]]:
    """New tensors like others, made by the functions that make them of a shape."""

    def empty_like(x: View, dtype: Any = None, buffer: Any = None, name: str = "") -> View:
        """A new tensor with the shape, dtype and memory of `x`."""
        return ndarray(x.shape, dtype or x.dtype, buffer or x.buffer, name)

    def zeros_like(x: View, dtype: Any = None, buffer: Any = None, name: str = "") -> View:
        """Zeros with the shape, dtype and memory of `x`."""
        return zeros(x.shape, dtype or x.dtype, buffer or x.buffer, name)

    return {f.__name__: TileFunction(f.__name__, f) for f in (empty_like, zeros_like)}


def _same_in_every_program(made: View, shape: Sequence[int], dtype: Any) -> View:
    if made.shape == tuple(shape) and made.dtype is as_dtype(dtype):
        return made
    raise LaunchError(
        "the programs of this launch create different shared tensors",
        expected=f"shape {made.shape}, {made.dtype}, as the first program",
        got=f"shape {tuple(shape)}, {as_dtype(dtype)}",
        hint="create shared tensors outside of branches on nl.program_id",
        rule="NKI: both cores of an LNC follow the same control flow",
    )


def _space(language: Language, buffer: Any) -> Space:
    """The memory that `buffer` names; strings and None are 0.2's."""
    if isinstance(buffer, Space):
        return buffer
    if language.version == (0, 2):
        if buffer is None:
            return Space.sbuf
        if isinstance(buffer, str) and buffer in _BUFFERS:
            return _BUFFERS[buffer]
    raise MemorySpaceError(
        f"buffer={buffer!r} is not a memory",
        expected=", ".join(f"nl.{name}" for name in _BUFFERS),
        got=repr(buffer),
        rule="NKI 0.3 migration guide: buffers are objects, not strings",
    )


# -- programs and loops ---------------------------------------------------------------------------


def _programs() -> dict[str, Callable[..., int]]:
    def program_id(axis: int = 0) -> int:
        """Which of the launched cores runs this program."""
        return _on_axis(axis, running("nl.program_id").program)

    def num_programs(axes: int | None = 0) -> int:
        """How many cores the kernel was launched on."""
        return _on_axis(axes or 0, running("nl.num_programs").grid or (1,))

    def program_ndim() -> int:
        """Dimensions of the launch grid: 1 for kernel[lnc](…), 0 without one."""
        return len(running("nl.program_ndim").grid)

    return {"program_id": program_id, "num_programs": num_programs, "program_ndim": program_ndim}


def _on_axis(axis: int, values: tuple[int, ...]) -> int:
    if axis not in range(len(values)):
        raise LaunchError(
            f"program axis {axis}",
            expected="0: a launch has one axis, the LNC degree",
            got=str(axis),
            hint="SPMD grids ended with 0.1: make the other axes loops",
            rule="NKI: kernel[lnc]",
        )
    return values[axis]


def _loop(name: str) -> Callable[..., range]:
    def loop(start: int, stop: int | None = None, step: int = 1) -> range:
        try:
            return range(start) if stop is None else range(start, stop, step)
        except (TypeError, ValueError) as wrong:
            raise KernelError(
                f"nl.{name}: {wrong}",
                expected="compile-time ints",
                got=f"({start!r}, {stop!r}, {step!r})",
                rule=f"NKI: nl.{name}",
            ) from None

    loop.__name__ = name
    loop.__doc__ = f"Python's range; {name} differs only in name from 0.2 on."
    return loop
