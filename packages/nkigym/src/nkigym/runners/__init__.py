"""Measurements of a kernel: by the model, by the interpreter, or on a device."""

from nkigym.runners.neuron import Neuron
from nkigym.runners.neuron_installation import NeuronError, cores
from nkigym.runners.protocol import Case, Measurement, Runner, case_of
from nkigym.runners.simulated import Interpreter, Timeline

__all__ = [
    "Case",
    "Interpreter",
    "Measurement",
    "Neuron",
    "NeuronError",
    "Runner",
    "Timeline",
    "case_of",
    "cores",
]
