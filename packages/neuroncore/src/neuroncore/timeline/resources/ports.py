"""Paths to memory that two engines cannot use at the same time.

trn1: VectorE and GpSimdE to SBUF, VectorE and ScalarE to PSUM. Later generations: VectorE in a
performance mode and GpSimdE to SBUF, VectorE and ScalarE to one PSUM bank; which bank the compiler
gives a tensor is not known, so the tiles of one PSUM tensor are taken to share theirs.
[NKI architecture guides: concurrent accesses; data movement updates]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from neuroncore.enums import Engine, MemorySpace
from neuroncore.instructions import Call as MachineCall
from neuroncore.program import Call
from neuroncore.timeline.resources.reservations import Gaps
from neuroncore.work import Pass

_SBUF_USERS = (Engine.vector, Engine.gpsimd)
_PSUM_USERS = (Engine.vector, Engine.scalar)


class Ports:
    """The ports that an instruction takes; ports of one engine alone never conflict."""

    def __init__(self, gaps: dict[str, Gaps]) -> None:
        self.gaps = gaps
        self.users: dict[str, set[Engine]] = {}

    def learn(self, names: Iterable[str], engines: set[Engine]) -> None:
        """Instructions on these engines may take them."""
        for name in names:
            self.users.setdefault(name, set()).update(engines)

    def of(self, names: Iterable[str]) -> list[Gaps]:
        """The reservations of an instruction that takes these."""
        shared = [name for name in names if len(self.users[name]) > 1]
        return [self.gaps.setdefault(name, Gaps()) for name in shared]


def ports_of(call: Call, made: MachineCall, op: Pass) -> Iterator[str]:
    """The names of the ports that `op` takes while it runs, if another engine uses them too."""
    spaces = {spec.space for spec in made.tiles.values()}
    first = made.target.generation < 3
    wide = first or op.fast or op.engine is Engine.gpsimd
    if wide and MemorySpace.sbuf in spaces and op.engine in _SBUF_USERS:
        yield "sbuf"
    if MemorySpace.psum in spaces and op.engine in _PSUM_USERS:
        if first:
            yield "psum"
        else:
            psum = (n for n, spec in made.tiles.items() if spec.space is MemorySpace.psum)
            yield from {f"bank of {call.accesses[n].buffer}" for n in psum}
