"""Time: plays a program's micro-ops on the engines and queues of a NeuronCore."""

from neuroncore.timeline.clock import ticks_per_ns
from neuroncore.timeline.constants import Constants, constants, machine
from neuroncore.timeline.estimate import estimate, price_ns
from neuroncore.timeline.order import Gate, Order
from neuroncore.timeline.result import Bar, LaneUse, Step, Timeline
from neuroncore.timeline.state import CAUSES

__all__ = [
    "CAUSES",
    "Bar",
    "Constants",
    "Gate",
    "LaneUse",
    "Order",
    "Step",
    "Timeline",
    "constants",
    "estimate",
    "machine",
    "price_ns",
    "ticks_per_ns",
]
