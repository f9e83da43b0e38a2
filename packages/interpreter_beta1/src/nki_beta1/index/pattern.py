"""Affine index expressions without their constants, which change from tile to tile.

Patterns are interned, and so is what arithmetic makes of them: after the first tile of a loop an
index expression costs an addition and a look-up.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from neuroncore.errors import ShapeError

RULE = "NKI 0.1: advanced tensor indexing"
KEPT = 1 << 14
"""Results of index arithmetic that are kept of each kind; others are computed again."""


@dataclass(slots=True, eq=False)
class Pattern:
    """Σ steps[k] · i_k over axes of extents `shape`. Equal patterns are the same object.

    `low` and `high` are the smallest and largest value. `axis` is the only axis along which the
    values vary; -1 where they do not, None where there are several.
    """

    shape: tuple[int, ...]
    steps: tuple[int, ...]
    low: int
    high: int
    axis: int | None


@lru_cache(maxsize=KEPT)
def scaled(of: Pattern, factor: int) -> Pattern:
    return pattern(of.shape, tuple(s * factor for s in of.steps))


@lru_cache(maxsize=KEPT)
def added(one: Pattern, other: Pattern, sign: int) -> Pattern:
    """one + sign · other, broadcast; raises ShapeError where extents differ."""
    shape = broadcast_shapes(one.shape, other.shape)
    steps = [aligned(p, len(shape), 0).steps for p in (one, other)]
    return pattern(shape, tuple(a + sign * b for a, b in zip(*steps, strict=True)))


def aligned(of: Pattern, rank: int, trail: int) -> Pattern:
    """As one of `rank` axes, with `trail` axes of extent 1 after its own."""
    lead = rank - len(of.shape) - trail
    return arranged(of, (None,) * lead + tuple(range(len(of.shape))) + (None,) * trail)


@lru_cache(maxsize=KEPT)
def arranged(of: Pattern, axes: tuple[int | None, ...]) -> Pattern:
    """Its axes in this order; None is a new axis of extent 1."""
    return pattern(
        tuple(1 if a is None else of.shape[a] for a in axes),
        tuple(0 if a is None else of.steps[a] for a in axes),
    )


@lru_cache(maxsize=KEPT)
def pattern(shape: tuple[int, ...], steps: tuple[int, ...]) -> Pattern:
    """The pattern with these extents and steps."""
    reach = [(n - 1) * s for n, s in zip(shape, steps, strict=True)]
    varying = [axis for axis, r in enumerate(reach) if r]
    axis = None if len(varying) > 1 else varying[0] if varying else -1
    low, high = sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach)
    return Pattern(shape, steps, low, high, axis)


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The broadcast shape of index expressions; raises ShapeError where extents differ."""
    rank = max(map(len, shapes))
    met = [1] * rank
    for shape in shapes:
        for axis, extent in enumerate(shape, rank - len(shape)):
            if extent != 1 and met[axis] not in (1, extent):
                raise ShapeError(
                    "index expressions of different extents meet on one axis",
                    expected="equal extents, or 1",
                    got=" and ".join(map(str, shapes)),
                    hint="give each axis its own place: nl.arange(P)[:, None], "
                    "nl.arange(F)[None, :]",
                    rule=RULE,
                )
            if extent != 1:
                met[axis] = extent
    return tuple(met)
