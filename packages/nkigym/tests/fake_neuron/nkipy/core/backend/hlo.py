"""A stand-in for the descriptions of a kernel's arguments and results."""

from dataclasses import dataclass


@dataclass
class HLOTensor:
    shape: tuple
    dtype: object
    name: str


class HLOModule:
    def __init__(self, name):
        self.name, self.parameters, self.results = name, [], []

    def add_parameter(self, shape, dtype, name):
        self.parameters.append(HLOTensor(shape, dtype, name))

    def set_results(self, results):
        self.results = results
