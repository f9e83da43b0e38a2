"""Options of runners that have processes of their own."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

from neuroncore.commands.parser import seconds
from nkigym.runners import Interpreter, Neuron


def add_device(parser: argparse.ArgumentParser) -> None:
    """Artefacts, the limit of a compilation, where device files are."""
    add = parser.add_argument
    add("--artefacts", type=Path, default=Path("artefacts"), metavar="FOLDER",
        help="what was compiled, by content (default: artefacts)")  # fmt: skip
    add("--compile-time", type=seconds, default=600.0, metavar="TIME",
        help="the limit of each compilation (default: 10min)")  # fmt: skip
    add("--devices", type=Path, default=Path("/dev"), metavar="FOLDER",
        help="neuron: of the device files neuron0, neuron1, … (default: /dev)")  # fmt: skip


BACKGROUND: Mapping[str, Callable[[argparse.Namespace, str], Interpreter | Neuron]] = {
    "interpreter": lambda given, target: Interpreter(given.jobs),
    "neuron": lambda given, target: Neuron(
        target, given.artefacts, given.jobs, given.compile_time, devices=given.devices
    ),
}
"""Runners by name, of the options and the target."""
