"""dtypes as kernels write them."""

from __future__ import annotations

from typing import Any

from neuroncore.errors import DTypeError
from nki_dtypes import DType, resolve


def as_dtype(given: Any, operand: str = "dtype", position: int | None = None) -> DType:
    """nki_dtypes.resolve with the error placed in the user's code, at argument `operand`."""
    try:
        return resolve(given)
    except (ValueError, TypeError) as unknown:
        raise DTypeError(
            getattr(unknown, "what", str(unknown)),
            expected=getattr(unknown, "expected", None),
            got=getattr(unknown, "got", None),
            hint=getattr(unknown, "hint", None),
            operand=operand,
            position=position,
            rule="NKI: supported data types",
        ) from None
