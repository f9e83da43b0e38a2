"""Different buffers share no byte."""

from __future__ import annotations

from tokenplan.model import Buffer
from tokenplan.rules.pair import Answer, Pair, Removed

NAME = "distinct"
SAYS = "they touch different tensors"


def decide(pair: Pair) -> Answer:
    """Removed by the buffers alone; that two parameters are two tensors is an assumption."""
    a, b = pair.before.buffer, pair.after.buffer
    if a.id == b.id:
        return None
    return Removed((parameters_distinct(a, b),) if a.is_parameter and b.is_parameter else ())


def parameters_distinct(a: Buffer, b: Buffer) -> str:
    """The assumption on two parameters, the same whichever comes first."""
    return f"parameters {min(a.id, b.id)} and {max(a.id, b.id)} are distinct tensors"
