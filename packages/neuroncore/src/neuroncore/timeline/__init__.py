"""Time: plays a program's micro-ops on the engines and queues of a NeuronCore."""

from typing import TYPE_CHECKING

from neuroncore.lazy_names import lazy_names
from neuroncore.timeline.compilation.loop_transformations import Expansion, hoisted
from neuroncore.timeline.compilation.toolchain import TRANSFORMATIONS, Transformation
from neuroncore.timeline.dependences.order import Gate, Order
from neuroncore.timeline.estimate import MODES, estimate, latency_ns, reject_illegal
from neuroncore.timeline.model.bars import CAUSES, KINDS
from neuroncore.timeline.model.clock import ticks_per_ns
from neuroncore.timeline.model.constants import Constants, constants, machine
from neuroncore.timeline.model.constants_file import constants_text, read_constants
from neuroncore.timeline.results.timeline import (
    Bar,
    CriticalPathStep,
    LaneUse,
    Timeline,
    launch_starts,
)

if TYPE_CHECKING:
    from neuroncore.timeline.profiles.comparison import Comparison, compare, profiled_end_ns
    from neuroncore.timeline.profiles.refit import Refit, fit_constants, refit
    from neuroncore.timeline.profiles.rows import Profile, profile_of

__all__ = [
    "CAUSES",
    "KINDS",
    "MODES",
    "TRANSFORMATIONS",
    "Bar",
    "Comparison",
    "Constants",
    "CriticalPathStep",
    "Expansion",
    "Gate",
    "LaneUse",
    "Order",
    "Profile",
    "Refit",
    "Timeline",
    "Transformation",
    "compare",
    "constants",
    "constants_text",
    "estimate",
    "fit_constants",
    "hoisted",
    "latency_ns",
    "launch_starts",
    "machine",
    "profile_of",
    "profiled_end_ns",
    "read_constants",
    "refit",
    "reject_illegal",
    "ticks_per_ns",
]

__getattr__, _ = lazy_names(
    __name__,
    {
        "profiles.comparison": "Comparison compare profiled_end_ns",
        "profiles.refit": "Refit fit_constants refit",
        "profiles.rows": "Profile profile_of",
    },
)
