"""Optional tensor arguments, and the instruction of 2.27 whose public kernels have one."""

import numpy as np
import pytest

from nki_beta1 import nisa, nki, nl

X = np.array([[1, 2, 3, 4], [0, -1, 0, 2]], np.float32)


@nki.jit
def running_sums(x, start=None):
    """Sums of x so far, twice over the row; `start` is what they begin with."""
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    first = nl.load(start) if start else None
    command = nisa.reduce_cmd.load_reduce if start else nisa.reduce_cmd.reset_reduce
    src, dst = nl.load(x), nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    for imm1, cmd in ((first, command), (None, nisa.reduce_cmd.reduce)):
        nisa.tensor_scalar_cumulative(
            src=src, dst=dst, op0=nl.multiply, op1=nl.add, imm0=1.0, imm1=imm1, reduce_cmd=cmd
        )
    nl.store(out, value=dst)
    return out


@pytest.mark.parametrize("start", [None, np.array([[10], [20]], np.float32)], ids=["none", "given"])
def test_an_optional_tensor_is_true_when_it_is_given(start):
    twice = np.cumsum(np.hstack([X, X]), axis=1)[:, 4:] + (0 if start is None else start)
    np.testing.assert_array_equal(running_sums(X, start), twice)
