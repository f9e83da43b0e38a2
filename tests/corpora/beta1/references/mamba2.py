"""The state-space layer of Mamba 2 and its gradients, position by position, in float64.

A head h has a scalar decay; heads of a group share B and C. For each batch and head

    S[t] = exp(logA·dt[t])·S[t-1] + dt[t]·B[t] X[t]ᵀ        (states, features)
    Y[t] = C[t]·S[t] + D·X[t]

dt: (batch, time, heads); logA, D: (heads); X: (batch, time, heads, features); B, C: (batch, time,
groups, states).
"""

from __future__ import annotations

import numpy as np
from wide import Array, wide


def _per_head(x: Array, heads: int) -> Array:
    """(batch, time, groups, states), each group repeated for its heads."""
    return np.repeat(wide(x), heads // x.shape[2], axis=2)


def _states(dt: Array, logA: Array, X: Array, B: Array) -> Array:  # noqa: N803
    """S[t] for every t, and S = 0 before: (time + 1, batch, heads, states, features)."""
    batch, time, heads, features = X.shape
    S = np.zeros((time + 1, batch, heads, B.shape[3], features))  # noqa: N806
    for t in range(time):
        fade = np.exp(logA * dt[:, t])[..., None, None]
        drive = dt[:, t, :, None, None] * B[:, t, :, :, None] * X[:, t, :, None, :]
        S[t + 1] = fade * S[t] + drive
    return S


def forward(
    dt: Array,
    logA: Array,  # noqa: N803
    X: Array,  # noqa: N803
    B: Array,  # noqa: N803
    C: Array,  # noqa: N803
    D: Array,  # noqa: N803
) -> Array:
    """Y: (batch, time, heads, features)."""
    heads = X.shape[2]
    S = _states(wide(dt), wide(logA), wide(X), _per_head(B, heads))[1:]  # noqa: N806
    return np.einsum("bths,tbhsf->bthf", _per_head(C, heads), S) + wide(D)[:, None] * wide(X)


def gradients(
    dt: Array,
    logA: Array,  # noqa: N803
    X: Array,  # noqa: N803
    B: Array,  # noqa: N803
    C: Array,  # noqa: N803
    D: Array,  # noqa: N803
    d_out: Array,
) -> tuple[Array, ...]:
    """What d_out, the gradient of Y, gives for dt, logA, X, B, C, D.

    The gradients of logA and D stay per batch. The chain rule through the recurrence, from the last
    position to the first; G is the gradient of S[t].
    """
    groups, heads, time = B.shape[2], X.shape[2], X.shape[1]
    dt, logA, X, D, dY = (wide(x) for x in (dt, logA, X, D, d_out))  # noqa: N806
    B, C = _per_head(B, heads), _per_head(C, heads)  # noqa: N806
    S = _states(dt, logA, X, B)  # noqa: N806
    d_dt, d_logA = np.zeros_like(dt), np.zeros((len(X), heads))  # noqa: N806
    d_X, d_B = D[:, None] * dY, np.zeros_like(B)  # noqa: N806
    d_C = np.einsum("bthf,tbhsf->bths", dY, S[1:])  # noqa: N806
    G = np.zeros_like(S[0])  # noqa: N806
    for t in reversed(range(time)):
        G += C[:, t, :, :, None] * dY[:, t, :, None, :]  # noqa: N806
        fade = np.exp(logA * dt[:, t])
        through_decay = np.einsum("bhsf,bhsf->bh", G, S[t]) * fade
        d_dt[:, t] = through_decay * logA + np.einsum("bhsf,bhs,bhf->bh", G, B[:, t], X[:, t])
        d_logA += through_decay * dt[:, t]  # noqa: N806
        d_B[:, t] = np.einsum("bhsf,bhf->bhs", G, X[:, t]) * dt[:, t, :, None]
        d_X[:, t] += np.einsum("bhsf,bhs->bhf", G, B[:, t]) * dt[:, t, :, None]
        G *= fade[..., None, None]  # noqa: N806
    d_D = np.einsum("bthf,bthf->bh", dY, X)  # noqa: N806
    by_group = (*B.shape[:2], groups, heads // groups, B.shape[3])
    return (
        d_dt,
        d_logA,
        d_X,
        d_B.reshape(by_group).sum(axis=3),
        d_C.reshape(by_group).sum(axis=3),
        d_D,
    )
