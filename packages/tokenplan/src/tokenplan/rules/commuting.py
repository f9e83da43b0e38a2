"""Two reads, or two accumulations into the same bytes, in either order give the same."""

from tokenplan.kernel.model import commute
from tokenplan.rules.pair import Answer, Pair, Removed

NAME = "commute"
SAYS = "two reads, or two accumulations, give the same in either order"


def decide(pair: Pair) -> Answer:
    """Removed by the modes alone."""
    return Removed() if commute(pair.a.mode, pair.b.mode) else None
