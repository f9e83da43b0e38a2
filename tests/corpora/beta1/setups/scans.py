"""tensor_scalar_cumulative with the operators that a cases file cannot name."""

from __future__ import annotations

from typing import Any

import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


def sums(module: Any, src_data: Any, imm0: float) -> Any:
    """Running sums of x + imm0, a scalar."""
    return module.nki_tensor_scalar_cumulative_scalar(
        src_data, op0=nl.add, op1=nl.add, imm0=np.float32(imm0)
    )


def maxima(module: Any, src_data: Any, imm0: Any) -> Any:
    """Running maxima of x + imm0, a column."""
    return module.nki_tensor_scalar_cumulative_vector(src_data, op0=nl.add, op1=nl.max, imm0=imm0)


def sums_from(module: Any, src_data: Any, imm0: Any, imm1: Any) -> Any:
    """Running sums of x + imm0 that begin with imm1, both columns."""
    return module.nki_tensor_scalar_cumulative_vector(
        src_data,
        op0=nl.add,
        op1=nl.add,
        imm0=imm0,
        imm1=imm1,
        reduce_cmd=nisa.reduce_cmd.load_reduce,
    )


def chained_sums(module: Any, src_data: Any, imm0: float) -> Any:
    """Running sums of the row twice, the second continuing the first."""
    return module.nki_tensor_scalar_cumulative_chain(
        src_data, op0=nl.add, op1=nl.add, imm0=np.float32(imm0)
    )


def scan(module: Any, src_data: Any, initial: float) -> Any:
    """Running sums that begin with `initial`."""
    return module.nki_tensor_scan(src_data, op=nl.add, initial=np.float32(initial))
