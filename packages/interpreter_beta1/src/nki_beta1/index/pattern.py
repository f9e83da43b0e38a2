"""Affine index expressions without their constants, which change from tile to tile.

Patterns are interned, and so is what arithmetic makes of them: after the first tile of a loop an
index expression costs an addition and a look-up.
"""

from __future__ import annotations

from neuroncore.errors import ShapeError

RULE = "NKI 0.1: advanced tensor indexing"


class Pattern:
    """Σ steps[k] · i_k over axes of extents `shape`. Equal patterns are the same object.

    `low` and `high` are the smallest and largest value. `axis` is the only axis along which the
    values vary; -1 where they do not, None where there are several.
    """

    __slots__ = ("_arranged", "_scaled", "_sums", "axis", "high", "low", "shape", "steps")

    shape: tuple[int, ...]
    steps: tuple[int, ...]
    low: int
    high: int
    axis: int | None
    _scaled: dict[int, Pattern]
    _sums: dict[tuple[Pattern, int], Pattern]
    _arranged: dict[tuple[int | None, ...], Pattern]

    def times(self, factor: int) -> Pattern:
        found = self._scaled.get(factor)
        if found is None:
            found = pattern(self.shape, tuple(s * factor for s in self.steps))
            _remember(self._scaled, factor, found)
        return found

    def plus(self, other: Pattern, sign: int) -> Pattern:
        """self + sign · other, broadcast; raises ShapeError where extents differ."""
        found = self._sums.get((other, sign))
        if found is None:
            shape = broadcast_shapes(self.shape, other.shape)
            rank = len(shape)
            own, others = self.aligned(rank, 0), other.aligned(rank, 0)
            steps = tuple(a + sign * b for a, b in zip(own.steps, others.steps, strict=True))
            found = pattern(shape, steps)
            _remember(self._sums, (other, sign), found)
        return found

    def aligned(self, rank: int, trail: int) -> Pattern:
        """As one of `rank` axes, with `trail` axes of extent 1 after its own."""
        lead = rank - len(self.shape) - trail
        return self.arranged((None,) * lead + tuple(range(len(self.shape))) + (None,) * trail)

    def arranged(self, axes: tuple[int | None, ...]) -> Pattern:
        """Its axes in this order; None is a new axis of extent 1."""
        found = self._arranged.get(axes)
        if found is None:
            found = pattern(
                tuple(1 if a is None else self.shape[a] for a in axes),
                tuple(0 if a is None else self.steps[a] for a in axes),
            )
            _remember(self._arranged, axes, found)
        return found


_PATTERNS_KEPT = 1 << 14
_RESULTS_KEPT = 1 << 10
_interned: dict[tuple[tuple[int, ...], tuple[int, ...]], Pattern] = {}


def pattern(shape: tuple[int, ...], steps: tuple[int, ...]) -> Pattern:
    """The pattern with these extents and steps."""
    found = _interned.get((shape, steps))
    if found is None:
        found = Pattern()
        found.shape, found.steps = shape, steps
        found._scaled, found._sums, found._arranged = {}, {}, {}
        reach = [(n - 1) * s for n, s in zip(shape, steps, strict=True)]
        found.low, found.high = sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach)
        varying = [axis for axis, r in enumerate(reach) if r]
        found.axis = None if len(varying) > 1 else varying[0] if varying else -1
        if len(_interned) >= _PATTERNS_KEPT:
            _interned.clear()  # which only costs time
        _interned[shape, steps] = found
    return found


def _remember(memo: dict, key: object, found: Pattern) -> None:
    if len(memo) >= _RESULTS_KEPT:
        memo.clear()
    memo[key] = found


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
