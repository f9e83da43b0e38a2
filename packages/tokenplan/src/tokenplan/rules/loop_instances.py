"""A buffer that every iteration allocates is another one in the next."""

from tokenplan.rules.pair import Answer, Pair, Removed

NAME = "instances"
SAYS = "every iteration allocates the tensor"


def decide(pair: Pair) -> Answer:
    """Removed where a later iteration of the shared loops always has its own instance."""
    return Removed() if pair.least is None else None
