"""nki.typing's annotations, and decorators of nki.compiler that change nothing here."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from neuroncore.errors import DTypeError, ShapeError, SignatureError
from neuroncore.machine.launch import running
from neuroncore.memory import View
from nki_beta1.access.access import Access
from nki_beta1.execution.plans import gathered


class mutable:  # noqa: N801 - NKI's name
    """The mark of `nt.tensor[nt.mutable]`, which is `nt.mutable_tensor`."""


class tensor:  # noqa: N801 - NKI's name
    """`nt.tensor[shape]` or `nt.tensor`: an annotation; the arguments have the shapes."""

    def __class_getitem__(cls, item: Any) -> Any:
        return mutable_tensor if item is mutable else cls


class mutable_tensor(tensor):  # noqa: N801 - NKI's name
    """`nt.mutable_tensor`: a parameter that the kernel may write."""


def scalar(tile: Any) -> int:
    """`nt.scalar(tile)`: the number in a one-element integer tile, for loop bounds and indices.

    On the device a register; 0.1 had it behind an experimental flag of nki.jit. A Python number
    stays one. Raises ShapeError for more elements, DTypeError for floats.
    """
    if isinstance(tile, (bool, int, np.integer)):
        return int(tile)
    if not isinstance(tile, (View, Access)):
        raise SignatureError(
            f"nt.scalar of a {type(tile).__name__}",
            expected="a tile of one integer, or an int",
            got=repr(tile).partition("\n")[0][:80],
            operand="tile",
            position=0,
        )
    core: Any = running("nt.scalar").core
    core.flush()
    core.need_values()
    if isinstance(tile, Access):
        tile = tile.read()
    if tile.size != 1:
        raise ShapeError("nt.scalar takes one element", got=f"shape {tile.shape}", operand="tile")
    if not tile.spec.dtype.is_integer:
        raise DTypeError(f"nt.scalar of {tile.spec.dtype}", expected="an integer", operand="tile")
    tile.initialize()
    return int(gathered(tile).array.item())


def no_reorder() -> AbstractContextManager[None]:
    """`with nki.compiler.no_reorder():` - instructions run in program order here anyway."""
    return nullcontext()


# Decorators about compiling for the device: they give the function back as it is.


def skip_middle_end_transformations(func: Any = None) -> Any:
    """nki.compiler.skip_middle_end_transformations: nothing here."""
    return _unchanged(func)


def enable_stack_allocator(func: Any = None, log_level: int = 50) -> Any:
    """nki.compiler.enable_stack_allocator: nothing here, tensors do not move."""
    return _unchanged(func)


def force_auto_alloc(func: Any = None) -> Any:
    """nki.compiler.force_auto_alloc: nothing here, tensors without address have none."""
    return _unchanged(func)


def _unchanged(func: Any) -> Any:
    return func if func is not None else lambda function: function
