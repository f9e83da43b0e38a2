"""Time: plays a program's micro-ops on the engines and queues of a NeuronCore."""

from neuroncore.timeline.constants import Constants, constants
from neuroncore.timeline.estimate import estimate
from neuroncore.timeline.result import Bar, LaneUse, Step, Timeline

__all__ = ["Bar", "Constants", "LaneUse", "Step", "Timeline", "constants", "estimate"]
