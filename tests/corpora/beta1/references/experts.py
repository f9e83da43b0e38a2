"""The feed-forward part of a mixture of experts, four of eight per token, in float64.

Two kernels add the bias of a projection to every product and not to their sum: the bias then counts
as often as a token has elements.
"""

from __future__ import annotations

import numpy as np
from row_softmax import softmax
from wide import Array, wide

CHOSEN, SLOPE, LIMIT, EPSILON = 4, 1.702, 7.0, 1e-5


def swiglu(x: Array) -> Array:
    """Columns alternate between a gate g and a factor f: g * sigmoid(slope * g) * (f + 1).

    g is at most LIMIT, f at most LIMIT in magnitude.
    """
    gate = np.minimum(x[..., ::2], LIMIT)
    factor = np.clip(x[..., 1::2], -LIMIT, LIMIT)
    return gate / (1.0 + np.exp(-SLOPE * gate)) * (factor + 1.0)


def swiglu_of_x(x: Array) -> Array:
    """`swiglu` of an argument with this name."""
    return swiglu(wide(x))


def _normed(t: Array, scale: Array) -> Array:
    tokens = wide(t)
    return tokens / np.sqrt((tokens**2).mean(axis=1, keepdims=True) + EPSILON) * wide(scale)


def _best(scores: Array) -> Array:
    """The numbers of the highest scores of each token, best first."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :CHOSEN]


def _projected(weights: Array, biases: Array, tokens: Array, bias_counts: int) -> Array:
    """(…, out, in) times (…, in), and a bias per output that counts so many times."""
    return np.einsum("...oi,...i->...o", weights, tokens) + bias_counts * biases


def mixture_of_the_first_tokens_experts(
    t: Array,
    scale: Array,
    gate_weight: Array,
    gate_bias: Array,
    mlp1_weight: Array,
    mlp1_bias: Array,
    mlp2_weight: Array,
    mlp2_bias: Array,
) -> Array:
    """All tokens go through the first token's experts; each weights them by its own best scores.

    Both biases count once per input of their projection. That the experts are the first token's
    comes from an assignment of a column to a cube, which repeats it along the last axes.
    """
    tokens = _normed(t, scale)
    scores = tokens @ wide(gate_weight) + wide(gate_bias)
    first = np.broadcast_to(_best(scores)[0], (len(tokens), CHOSEN))
    inner = _projected(wide(mlp1_weight)[first], wide(mlp1_bias)[first], tokens[:, None],
                       tokens.shape[1])  # fmt: skip
    middle = swiglu(inner)
    outer = _projected(wide(mlp2_weight)[first], wide(mlp2_bias)[first], middle, middle.shape[2])
    weights = softmax(np.take_along_axis(scores, _best(scores), axis=1))
    return np.einsum("te,teh->th", weights, outer)


def one_token_of_its_experts(
    t: Array,
    scale: Array,
    gate_weight: Array,
    gate_bias: Array,
    mlp1_weight: Array,
    mlp1_bias_T: Array,  # noqa: N803
    mlp2_weight: Array,
    mlp2_bias_T: Array,  # noqa: N803
) -> Array:
    """(hidden, experts): what the first token's experts give, the biases as columns.

    The first bias counts once per input of its projection, the second once.
    """
    token = _normed(t, scale)[0]
    best = _best(token @ wide(gate_weight) + wide(gate_bias))[0]
    inner = _projected(wide(mlp1_weight)[best], wide(mlp1_bias_T).T[best], token, len(token))
    return _projected(wide(mlp2_weight)[best], wide(mlp2_bias_T).T[best], swiglu(inner), 1).T


def chosen_biases(
    t: Array,
    scale: Array,
    gate_weight: Array,
    gate_bias: Array,
    mlp1_weight: Array,
    mlp1_bias: Array,
    mlp2_weight: Array,
    mlp2_bias: Array,
) -> Array:
    """(tokens, experts, width): the first biases of the experts that score best.

    The scores are of the columns of t, which has as many as rows.
    """
    return mlp1_bias[_best(wide(t).T @ wide(gate_weight) + wide(gate_bias))]
