"""Kernels that are there to show an error: the first number that the error names is the result."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np


def _index_rejected(kernel: Callable[[Any], Any], in_tensor: Any) -> Any:
    try:
        kernel(in_tensor)
    except Exception as error:
        number = re.search(r"index (\d+) \(row \d+ of the index|row \d+ is (\d+)", str(error))
        if number is None:
            raise
        return np.asarray([int(number[1] or number[2])])
    raise AssertionError("the index outside was accepted")


def load_outside(module: Any, in_tensor: Any) -> Any:
    """Rows 0, 3, 6, ... beyond the last are loaded with oob_mode.error."""
    return _index_rejected(module.nki_indirect_load_oob_error_negative, in_tensor)


def store_outside(module: Any, in_tensor: Any) -> Any:
    """Rows 0, 3, 6, ... beyond the last are stored with oob_mode.error."""
    return _index_rejected(module.nki_indirect_store_oob_err_negative, in_tensor)
