"""nki.typing's annotations, and decorators of nki.compiler that change nothing here."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from neuroncore.errors import DTypeError, ShapeError
from neuroncore.launch import running


class mutable:  # noqa: N801 - NKI's name
    """The mark of `nt.tensor[nt.mutable]`, which is `nt.mutable_tensor`."""


class tensor:  # noqa: N801 - NKI's name
    """`nt.tensor[shape]` or `nt.tensor`: an annotation; shapes are those of the arguments."""

    def __class_getitem__(cls, item: Any) -> Any:
        return mutable_tensor if item is mutable else cls


class mutable_tensor(tensor):  # noqa: N801 - NKI's name
    """`nt.mutable_tensor`: a parameter that the kernel may write."""


def scalar(tile: Any) -> int:
    """`nt.scalar(tile)`: the number in a one-element integer tile, for loop bounds and indices.

    On the device a register; 0.1 had it behind an experimental flag of nki.jit. A Python number
    stays one. Raises ShapeError for more elements, DTypeError for floats.
    """
    if isinstance(tile, (bool, int)):
        return int(tile)
    core: Any = running("nt.scalar").core
    core.flush()
    core.need_values()
    if tile.array.size != 1:
        raise ShapeError("nt.scalar takes one element", got=f"shape {tile.shape}", operand="tile")
    if not tile.spec.dtype.is_integer:
        raise DTypeError(f"nt.scalar of {tile.spec.dtype}", expected="an integer", operand="tile")
    tile.settle()
    return int(tile.array.item())


def no_reorder() -> AbstractContextManager[None]:
    """`with nki.compiler.no_reorder():` - instructions run in program order here anyway."""
    return nullcontext()


def unchanged(name: str) -> Callable[..., Any]:
    """A decorator about compilation: it gives back the function as it is."""

    def decorator(func: Any = None, **options: Any) -> Any:
        if func is None:
            return lambda function: function
        return func

    decorator.__name__ = decorator.__qualname__ = name
    decorator.__doc__ = f"nki.compiler.{name}: about compiling for the device; nothing here."
    return decorator
