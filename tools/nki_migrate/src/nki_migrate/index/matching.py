"""Equal lines of two texts: `difflib` between lines that each text contains once.

`difflib` alone takes a time that grows with the square of what repeats: generated files of many
thousand like lines would take minutes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher

Opcode = tuple[str, int, int, int, int]

# A stretch of this many lines without a line of its own is left to difflib's own shortcut.
_LONG = 1000


def opcodes(
    old: Sequence[str], new: Sequence[str], is_junk: Callable[[str], bool] | None = None
) -> Iterator[Opcode]:
    """The result of `SequenceMatcher(is_junk, …).get_opcodes`: (tag, i1, i2, j1, j2) in order."""
    i = j = 0
    for a, b in [*_anchors(old, new, is_junk), (len(old), len(new))]:
        yield from _between(old, new, (i, a), (j, b), is_junk)
        if a < len(old):
            yield "equal", a, a + 1, b, b + 1
        i, j = a + 1, b + 1


def _between(
    old: Sequence[str],
    new: Sequence[str],
    lines: tuple[int, int],
    others: tuple[int, int],
    is_junk: Callable[[str], bool] | None,
) -> Iterator[Opcode]:
    (i1, i2), (j1, j2) = lines, others
    if i1 == i2 and j1 == j2:
        return
    long = max(i2 - i1, j2 - j1) > _LONG
    matcher = SequenceMatcher(is_junk, old[i1:i2], new[j1:j2], autojunk=long)
    for tag, a1, a2, b1, b2 in matcher.get_opcodes():
        yield tag, i1 + a1, i1 + a2, j1 + b1, j1 + b2


def _anchors(
    old: Sequence[str], new: Sequence[str], is_junk: Callable[[str], bool] | None
) -> list[tuple[int, int]]:
    """Pairs of places of lines that both texts hold once, in the order of both, as many as can be.

    The longest increasing subsequence of their places in `new`.
    """
    counts, others = Counter(old), Counter(new)
    places = {
        line: j
        for j, line in enumerate(new)
        if others[line] == 1 and not (is_junk and is_junk(line))
    }
    pairs = [
        (i, places[line]) for i, line in enumerate(old) if counts[line] == 1 and line in places
    ]
    tails: list[int] = []
    last: list[int] = []  # the pair that ends the best chain of each length
    before: list[int] = []
    for index, (_, j) in enumerate(pairs):
        length = bisect_left(tails, j)
        tails[length : length + 1] = [j]
        last[length : length + 1] = [index]
        before.append(last[length - 1] if length else -1)
    chain = []
    index = last[-1] if last else -1
    while index >= 0:
        chain.append(pairs[index])
        index = before[index]
    return chain[::-1]
