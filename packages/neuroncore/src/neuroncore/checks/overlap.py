"""`overlap`: tensors at explicit addresses that share bytes while both are alive.

A tensor's content lives from its first use to its last, wherever it was allocated; before and after
another may lie there, which is what explicit addresses are for. Where a tensor without an address
will lie is the compiler's to decide, so such tensors are left out.
"""

from __future__ import annotations

from neuroncore.checks._lives import Life, LivesWatcher
from neuroncore.checks.findings import Finding
from neuroncore.core import NeuronCore
from neuroncore.engines import Space

RULE = "NKI direct allocation guide: tensors that are alive together do not share memory"


class Overlap(LivesWatcher):
    """Compares the addresses of tensors whose contents are alive together."""

    def judge(self, lives: list[Life], core: NeuronCore) -> None:
        for space in (Space.sbuf, Space.psum):
            alive: list[Life] = []
            placed = [n for n in lives if n.space is space and n.address is not None]
            for life in sorted(placed, key=_first):
                alive = [other for other in alive if _outlives(other, life)]
                for other in alive:
                    if _share(life, other):
                        self._report(life, other)
                alive.append(life)

    def _report(self, later: Life, earlier: Life) -> None:
        self.report.add(
            Finding(
                "overlap",
                f"{later.name} overwrites {earlier.name}, which is used afterwards",
                later.place,
                expected="another address, or a first use after the last use of "
                f"{earlier.name} ({earlier.last_place})",
                got=f"{later.name} at {_span(later)}; {earlier.name} at {_span(earlier)}",
                rule=RULE,
                notes=(f"{earlier.name} is allocated at {earlier.place}",),
            )
        )


def _first(life: Life) -> int:
    assert life.first is not None
    return life.first


def _outlives(earlier: Life, later: Life) -> bool:
    """Whether the earlier one is looked at after the later one begins; an instruction may put its
    result exactly where its input lay.
    """
    last, first = earlier.last, _first(later)
    in_place = earlier.address == later.address and earlier.free_bytes == later.free_bytes
    return last > first or (last == first and not in_place)


def _share(a: Life, b: Life) -> bool:
    (pa, fa), (pb, fb) = a.address or (0, 0), b.address or (0, 0)
    partitions = pa < pb + b.shape[0] and pb < pa + a.shape[0]
    return partitions and fa < fb + b.free_bytes and fb < fa + a.free_bytes


def _span(life: Life) -> str:
    partition, byte = life.address or (0, 0)
    return (
        f"partitions {partition} to {partition + life.shape[0] - 1}, "
        f"bytes {byte} to {byte + life.free_bytes - 1} of {life.space.name.upper()}"
    )
