"""Kernels that put rows of float8 and the four bytes of their float32 scale into one array."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np


def _room(hidden: Any) -> Any:
    return np.zeros((*hidden.shape[:2], hidden.shape[2] + 4), ml_dtypes.float8_e4m3)


def _scales(packed: Any) -> Any:
    return np.ascontiguousarray(packed[..., -4:]).view(np.float32)


def _values(packed: Any) -> Any:
    return packed[..., :-4].astype(np.float32) * _scales(packed)


def compatible(module: Any, **arguments: Any) -> Any:
    """The rows that come back out."""
    return _values(module.compatible_rmsnorm_quant(**arguments))


def compatible_scales(module: Any, **arguments: Any) -> Any:
    """The scales of the rows."""
    return _scales(module.compatible_rmsnorm_quant(**arguments))


def plain(module: Any, hidden: Any, **arguments: Any) -> Any:
    """A kernel that writes an argument."""
    out = _room(hidden)
    module.rmsnorm_quant(hidden, out=out, **arguments)
    return _values(out)


def sharded(module: Any, hidden: Any, **arguments: Any) -> Any:
    """Two programs that share the rows."""
    out = _room(hidden)
    module.shard_rmsnorm_quant[2](hidden, out=out, **arguments)
    return _values(out)
