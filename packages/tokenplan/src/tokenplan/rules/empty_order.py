"""Orders that no two iterations are in."""

from tokenplan.rules.pair import Answer, Pair, Removed

NAME = "never"
SAYS = "the loops around have no two iterations in this order"


def decide(pair: Pair) -> Answer:
    """Removed where a loop has no iteration, or none that is later."""
    loops = (*pair.source.loops, *pair.sink.loops)
    if loops and any(pair.trips[name][1] < 0 for name in loops):
        return Removed()
    least = pair.least
    if least is None and pair.fixed == 0:
        return Removed()
    return None
