"""Functions of `nl` that make tensors.

`nl.shared_constant` gives a tensor in shared HBM whose content is part of the kernel. 0.2 documents
`(constant, dtype=None)` on a trace-time tensor of its own, which no public text describes further,
and the path of a file from SDK 2.28 on; later versions `(constant)` on a NumPy array or the path of
a .npy file. Here every version takes both, and 0.2 casts to `dtype`. A path that is not absolute is
one from the working directory, as for np.load.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neuroncore.documents import read_array, unreadable
from neuroncore.enums import MemorySpace
from neuroncore.errors import (
    AttributeValueError,
    DTypeError,
    LaunchError,
    MemorySpaceError,
    ShapeError,
    UnsupportedError,
)
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.isa.functions import make_function
from neuroncore.machine.launch import running
from neuroncore.machine.loop_trace import act
from neuroncore.memory import View
from neuroncore.spec import as_dtype
from neuroncore.surface import signature
from nki_beta2.kernel.jit import Language
from nki_beta2.nl.arithmetic import is_number
from nki_beta2.nl.operations import TileFunction
from nki_dtypes import (
    DType,
    bfloat16,
    cast,
    float8_e4m3fn,
    float8_e5m2,
    float8_e8m0fnu,
    float16,
    float32,
    int8,
    int16,
    int32,
    uint8,
    uint16,
    uint32,
)

BUFFERS = {
    "sbuf": MemorySpace.sbuf,
    "psum": MemorySpace.psum,
    "hbm": MemorySpace.private_hbm,
    "private_hbm": MemorySpace.private_hbm,
    "shared_hbm": MemorySpace.shared_hbm,
}

RULE = "NKI: nl.shared_constant"
DOCUMENTED = (
    float32, float16, bfloat16, int32, int16, int8, uint32, uint16, uint8, float8_e4m3fn,
    float8_e5m2, float8_e8m0fnu,
)  # fmt: skip
"""Element types of arrays, as the page of nl.shared_constant lists them. Packed types and
tfloat32, untested there by its own word, no NumPy array has."""


_NARROWER = {np.dtype(np.float64): np.float32, np.dtype(np.int64): np.int32}
"""NumPy's 64 bits are a default, not a wish, where a dtype is given."""


def make_shared_constant(language: Language) -> Callable[..., View]:
    """`nl.shared_constant` of this version."""

    def shared_constant_of(constant: Any, dtype: Any = None) -> View:
        """A tensor in shared HBM with the content of a NumPy array, or of a .npy file.

        Nothing writes it; all programs of a launch share it. 0.2 casts to `dtype`. Raises
        DTypeError, ShapeError, AttributeValueError or LaunchError.
        """
        array = _array_of(constant)
        if dtype is None:
            return _constant(array, _documented(array))
        kind = as_dtype(dtype, position=1)
        narrow = array.astype(_NARROWER.get(array.dtype, array.dtype))
        return _constant(cast(narrow, kind, from_=as_dtype(narrow.dtype, "constant", 0)), kind)

    def shared_constant(constant: Any) -> View:
        return shared_constant_of(constant)

    shared_constant.__doc__ = shared_constant_of.__doc__
    return shared_constant if language.version >= (0, 3) else shared_constant_of


def _constant(array: np.ndarray, kind: DType) -> View:
    """The tensor that all programs of the launch share."""
    launch = running("nl.shared_constant")
    core = launch.core
    made = launch.share(lambda: core.constant(array, kind))
    if any(launch.program) and not _holds(made, array.astype(core.stored_as(kind)), kind):
        raise LaunchError(
            "the programs of this launch create different constants",
            expected=f"shape {made.shape}, {made.dtype}, and the first program's elements",
            got=f"shape {array.shape}, {kind}",
            hint="constants are the same on both cores: leave nl.program_id out of them",
            rule=f"{RULE}, LNC=2",
        )
    return made


def _holds(made: View, array: np.ndarray, kind: DType) -> bool:
    same = made.storage.constant and made.shape == array.shape and made.dtype is kind
    return same and made.array.tobytes() == array.tobytes()


def _array_of(given: Any) -> np.ndarray:
    """The argument of the kernel, as an array of one dimension or more."""
    array = _loaded(given) if isinstance(given, str) else given
    if not isinstance(array, np.ndarray):
        raise AttributeValueError(
            "not a constant",
            expected="a NumPy array, or the path of a .npy file",
            got=f"{array!r}"[:80] if isinstance(array, View) else f"a {type(array).__name__}",
            hint="np.array(…) makes one of numbers and lists, outside of the kernel",
            operand="constant",
            position=0,
            rule=RULE,
        )
    if not array.ndim or not array.size:
        raise ShapeError(
            "a constant without " + ("elements" if array.ndim else "dimensions"),
            expected="one or more",
            got=f"shape {array.shape}",
            hint=None if array.ndim else "array.reshape(1)",
            operand="constant",
            position=0,
            rule=RULE,
        )
    return array


def _loaded(path: str) -> np.ndarray:
    """The array of a .npy file."""
    try:
        if Path(path).suffix != ".npy":
            raise ValueError("its name does not end in .npy")
        return read_array(path)
    except (OSError, ValueError) as wrong:
        raise AttributeValueError(
            f"no constant can be read from {path!r}: {unreadable(wrong)}",
            expected="the path of a .npy file, absolute or from the working directory",
            operand="constant",
            position=0,
            rule=RULE,
        ) from None


def _documented(array: np.ndarray) -> DType:
    """The element type, if constants have it."""
    kind = as_dtype(array.dtype, "constant", 0)
    if kind in DOCUMENTED:
        return kind
    raise DTypeError(
        f"a constant of {kind}",
        expected=", ".join(map(str, DOCUMENTED)),
        got=f"shape {array.shape}, {kind}",
        hint=f"give its bytes, array.view(np.uint8), and look at them with .view(nl.{kind})",
        operand="constant",
        position=0,
        rule=RULE,
    )


def creation_functions(language: Language) -> dict[str, Callable[..., Any]]:
    """`nl.ndarray`, `nl.zeros` and the other functions of this version that make tensors."""
    memset_signature = signature("memset", language.choice.nki)
    assert memset_signature is not None
    memset = make_function(INSTRUCTIONS["memset"], memset_signature)

    def ndarray(
        shape: Sequence[int],
        dtype: Any,
        buffer: Any = MemorySpace.sbuf,
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
        if space is MemorySpace.shared_hbm:
            made = launch.share(lambda: launch.core.allocate(shape, dtype, space, name))
            return _same_in_every_program(made, shape, dtype)
        if address is not None and launch.core.options.address_unit == "elements":
            address = _in_bytes(address, dtype)
        return launch.core.allocate(shape, dtype, space, name, address)

    def full(
        shape: Sequence[int],
        fill_value: float,
        dtype: Any,
        buffer: Any = MemorySpace.sbuf,
        name: str = "",
    ) -> View:
        """A new tensor with `fill_value` everywhere."""
        tensor = ndarray(shape, dtype, buffer, name)
        if tensor.dtype.is_integer and isinstance(fill_value, float) and fill_value % 1 == 0:
            fill_value = int(fill_value)
        if tensor.buffer.on_chip:
            memset(tensor, fill_value)
        elif tensor.storage.fresh:  # shared, and a program before this one may have filled it
            staged = ndarray((1, 1), dtype)
            memset(staged, fill_value)
            tensor.initialize()
            act(running("nl.full").core, lambda: _fill(tensor, staged))
        return tensor

    def zeros(
        shape: Sequence[int], dtype: Any, buffer: Any = MemorySpace.sbuf, name: str = ""
    ) -> View:
        """A new tensor filled with zeros."""
        return full(shape, 0, dtype, buffer, name)

    def ones(
        shape: Sequence[int], dtype: Any, buffer: Any = MemorySpace.sbuf, name: str = ""
    ) -> View:
        """A new tensor filled with ones."""
        return full(shape, 1, dtype, buffer, name)

    made = {"ndarray": ndarray, "zeros": zeros}
    made["shared_constant"] = make_shared_constant(language)
    if language.version >= (0, 3):
        made |= {"full": full, "ones": ones} | _like(ndarray, zeros)
    return made


def _fill(tensor: View, staged: View) -> None:
    tensor.array[...] = staged.array[0, 0]
    tensor.core.moved(tensor)


def _in_bytes(address: Any, dtype: Any) -> Any:
    """An address in elements, in bytes; other values stay as they are and fail in the machine."""
    if isinstance(address, (tuple, list)) and len(address) == 2 and is_number(address[1]):
        return address[0], address[1] * _dtype_of(dtype).itemsize
    return address


def _dtype_of(dtype: Any) -> DType:
    """A dtype of the version that runs."""
    rules = running("nl.ndarray").core.rules
    return as_dtype(dtype, takes_64_bits=rules.takes_64_bits)


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
    if made.shape == tuple(shape) and made.dtype is _dtype_of(dtype):
        return made
    raise LaunchError(
        "the programs of this launch create different shared tensors",
        expected=f"shape {made.shape}, {made.dtype}, as the first program",
        got=f"shape {tuple(shape)}, {_dtype_of(dtype)}",
        hint="create shared tensors outside of branches on nl.program_id",
        rule="NKI: both cores of an LNC follow the same control flow",
    )


def _space(language: Language, buffer: Any) -> MemorySpace:
    """The memory that `buffer` names; strings and None are 0.2's."""
    if isinstance(buffer, MemorySpace):
        return buffer
    if language.version == (0, 2):
        if buffer is None:
            return MemorySpace.sbuf
        if isinstance(buffer, str) and buffer in BUFFERS:
            return BUFFERS[buffer]
    raise MemorySpaceError(
        f"buffer={buffer!r} is not a memory",
        expected=", ".join(f"nl.{name}" for name in BUFFERS),
        got=repr(buffer),
        rule="NKI 0.3 migration guide: buffers are objects, not strings",
    )
