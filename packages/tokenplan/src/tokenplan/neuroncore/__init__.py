"""The NeuronCore target: engine streams and DMA queues that wait for one another's counters."""

from tokenplan.neuroncore.listing import listing, schedule_text, scheduled, suggestions
from tokenplan.neuroncore.machine import facts_table, machine
from tokenplan.neuroncore.plan import AsyncPlan, Wait, all_pairs, deal, plan_with
from tokenplan.neuroncore.play import Comparison, Played, compare, play
from tokenplan.neuroncore.search import by_direction, schedule
from tokenplan.neuroncore.trace import trace_json

__all__ = [
    "AsyncPlan",
    "Comparison",
    "Played",
    "Wait",
    "all_pairs",
    "by_direction",
    "compare",
    "deal",
    "facts_table",
    "listing",
    "machine",
    "plan_with",
    "play",
    "schedule",
    "schedule_text",
    "scheduled",
    "suggestions",
    "trace_json",
]
