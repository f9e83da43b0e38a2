"""Different buffers share no byte."""

from __future__ import annotations

from tokenplan.kernel.addresses import is_memory
from tokenplan.kernel.model import Buffer
from tokenplan.rules.pair import Answer, Pair, Removed

NAME = "distinct"
SAYS = "they access different tensors"


def decide(pair: Pair) -> Answer:
    """Removed by the buffers alone, and what is assumed of them."""
    a, b = pair.before.buffer, pair.after.buffer
    if a.id == b.id:
        return None
    return Removed(assumed(a, b))


def assumed(a: Buffer, b: Buffer) -> tuple[str, ...]:
    """Conditions for two buffers to share no byte, the same whichever comes first.

    That two parameters are two tensors, and that the tensors which the compiler places in a memory
    are disjoint from the tensors that the kernel placed there.
    """
    if a.is_parameter and b.is_parameter:
        return (f"parameters {min(a.id, b.id)} and {max(a.id, b.id)} are distinct tensors",)
    if a.space == b.space and is_memory(a) != is_memory(b):
        return (f"tensors in {a.space} without an address are disjoint from those with one",)
    return ()
