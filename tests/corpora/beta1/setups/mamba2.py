"""Kernels of NKI 0.1's first release: outputs are arguments, nki_jit comes from torch_neuronx."""

from __future__ import annotations

from typing import Any

import neuronxcc.nki as nki
import neuronxcc.nki.typing as nt
import numpy as np


def forward(module: Any, dt: Any, logA: Any, X: Any, B: Any, C: Any, D: Any) -> Any:  # noqa: N803
    """One program per batch; the output is written into an argument."""

    @nki.jit
    def kernel(*given: Any, out: nt.mutable_tensor) -> Any:
        module.mamba_kernel_(*given[:5], out, given[5])
        return out

    return kernel[X.shape[0]](dt, logA, X, B, C, D, out=np.empty_like(X))


def gradients(
    module: Any,
    dt: Any,
    logA: Any,  # noqa: N803
    X: Any,  # noqa: N803
    B: Any,  # noqa: N803
    C: Any,  # noqa: N803
    D: Any,  # noqa: N803
    d_out: Any,
) -> Any:
    """One program per batch; six outputs, two of them with an axis of batches."""

    @nki.jit
    def kernel(
        *given: Any,
        ddt: nt.mutable_tensor,
        dlogA: nt.mutable_tensor,  # noqa: N803
        dX: nt.mutable_tensor,  # noqa: N803
        dB: nt.mutable_tensor,  # noqa: N803
        dC: nt.mutable_tensor,  # noqa: N803
        dD: nt.mutable_tensor,  # noqa: N803
    ) -> Any:
        arrays, D, d_out = given[:5], given[5], given[6]  # noqa: N806
        module.mamba_kernel_bwd_(*arrays, d_out, ddt, dlogA, dX, dB, dC, D, dD)
        return ddt, dlogA, dX, dB, dC, dD

    per_batch = np.empty((X.shape[0], len(logA)), X.dtype)
    outputs = {
        "ddt": np.empty_like(dt),
        "dlogA": per_batch,
        "dX": np.empty_like(X),
        "dB": np.empty_like(B),
        "dC": np.empty_like(C),
        "dD": per_batch.copy(),
    }
    return kernel[X.shape[0]](dt, logA, X, B, C, D, d_out, **outputs)
