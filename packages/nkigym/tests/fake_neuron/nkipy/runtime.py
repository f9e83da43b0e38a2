"""A stand-in for the vendor's runtime, which runs kernels on the interpreter of this project;
FAKE_NEURON names its fault.
"""

import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np

assert "neuronxcc" not in sys.modules, "compiler and runtime in one process"
FAULT = os.environ.get("FAKE_NEURON", "")


class CompiledKernel:
    def __init__(self, traced, neff):
        self.name, self.results = traced.__name__, traced._code.results
        self.source = Path(neff).with_name("kernel.py")
        assert Path(neff).read_text() == "neff"


class BaremetalExecutor:
    def __init__(self, verbose):
        assert os.environ["NEURON_RT_VISIBLE_CORES"].isdecimal()
        assert os.environ["NEURON_LOGICAL_NC_CONFIG"] == "1", "default on trn2: 2"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def run(self, kernel, *inputs):
        if FAULT == "runtime crashes":
            os.abort()
        if FAULT == "runtime hangs":
            Path(os.environ["FAKE_HANGS"]).touch()
            time.sleep(600)
        return FAULTS.get(FAULT, list)(_executed(kernel, inputs))

    def benchmark(self, kernel, *inputs, warmup_iterations, benchmark_iterations):
        times = [0.010] * (benchmark_iterations - 1) + [0.5]
        return SimpleNamespace(durations_ms=TIMES.get(FAULT, list)(times))


def _executed(kernel, inputs):
    from neuroncore.commands.function import find_function, parse_name
    from nki_runtime import use

    with use(target=os.environ.get("FAKE_TARGET", "trn2"), shadow=True):
        found = find_function(parse_name(f"{kernel.source}:{kernel.name}"))(*inputs)
    return list(found) if isinstance(found, tuple) else [found]


def _changed(outputs, more=100):
    outputs = [np.array(output) for output in outputs]
    outputs[-1].flat[-1] += more
    return outputs


def _last(ms):
    return lambda times: [*times[:-1], ms]


def _of_bytes(outputs):
    return [output.view(np.int8) for output in outputs]


TIMES = {
    "no times": lambda times: [], "one time": lambda times: times[:1],
    "a time less": lambda times: times[1:], "not a time": _last(np.nan), "endless": _last(np.inf),
    "negative": _last(-1.0), "zero": _last(0.0), "words": _last("10 us"),
}  # fmt: skip
FAULTS = {
    "wrong values": _changed,
    "wrong dtype": lambda outputs: [output.astype(np.float16) for output in outputs],
    "wrong shape": lambda outputs: [output.reshape(64, 128) for output in outputs],
    "nan": lambda outputs: _changed(outputs, np.nan),
    "too few outputs": lambda outputs: outputs[:-1],
    "too many outputs": lambda outputs: [*outputs, outputs[0]],
    "no outputs": lambda outputs: [],
    "no list of outputs": lambda outputs: None,
    "fp8 as int8": _of_bytes,
    "fp8 as void": lambda outputs: [output.view("V1") for output in outputs],
}
