"""The feed-forward part of a mixture of experts: kernels that are called by kernels."""

from __future__ import annotations

from typing import Any

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


def swiglu_in_sbuf(module: Any, x: Any) -> Any:
    """The kernel works on blocks in SBUF of its caller's: load, call, store."""

    @nki.jit
    def caller(x: Any) -> Any:
        tokens, experts, width = x.shape
        given = nl.ndarray((tokens, nl.par_dim(experts), width), dtype=x.dtype, buffer=nl.sbuf)
        for token in nl.static_range(tokens):
            given[token] = nl.load(x[token])
        result = module.nki_swiglu(given)
        out = nl.ndarray((tokens, experts, width // 2), dtype=x.dtype, buffer=nl.shared_hbm)
        for token in nl.static_range(tokens):
            nl.store(out[token], value=result[token])
        return out

    return caller(x)


def with_weights_of_the_module(
    module: Any,
    t: Any,
    scale: Any,
    gate_weight: Any,
    gate_bias: Any,
    mlp1_weight: Any,
    mlp1_bias_T: Any,  # noqa: N803
    mlp2_weight: Any,
    mlp2_bias_T: Any,  # noqa: N803
) -> Any:
    """A part of the kernel reads `mlp1_weight` of its module, where the file's main puts it."""
    module.mlp1_weight = mlp1_weight
    return module.sample_selection_kernel(
        t, scale, gate_weight, gate_bias, mlp1_weight, mlp1_bias_T, mlp2_weight, mlp2_bias_T
    )
