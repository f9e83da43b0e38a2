"""Time: plays a program's micro-ops on the engines and queues of a NeuronCore."""

from neuroncore.timeline.compilation.toolchain import TRANSFORMATIONS, Transformation
from neuroncore.timeline.dependences.order import Gate, Order
from neuroncore.timeline.estimate import estimate, latency_ns
from neuroncore.timeline.model.bars import CAUSES
from neuroncore.timeline.model.clock import ticks_per_ns
from neuroncore.timeline.model.constants import Constants, constants, machine
from neuroncore.timeline.replay import Replay, replay, rules
from neuroncore.timeline.results.timeline import Bar, CriticalPathStep, LaneUse, Timeline

__all__ = [
    "CAUSES",
    "TRANSFORMATIONS",
    "Bar",
    "Constants",
    "CriticalPathStep",
    "Gate",
    "LaneUse",
    "Order",
    "Replay",
    "Timeline",
    "Transformation",
    "constants",
    "estimate",
    "latency_ns",
    "machine",
    "replay",
    "rules",
    "ticks_per_ns",
]
