"""The vendor's packages and the cores of this computer, from package metadata and device files: no
module of the vendor's is imported.
"""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from neuroncore.errors import OptionError

PACKAGES = ("nki", "neuronx-cc", "nkipy")
"""Distributions that compile and run; their versions are part of an artefact's key."""
CORES_PER_DEVICE = {"trn1": 2, "inf2": 2, "trn2": 8, "trn3": 8}
VISIBLE_CORES = "NEURON_RT_VISIBLE_CORES"
PHYSICAL_CORES, PER_LOGICAL = "NEURON_LOGICAL_NC_CONFIG", 1
"""Physical cores of a logical one; compiler and runtime have to agree, and the runtime's default on
trn2 is 2 (AWS Neuron: Logical NeuronCore configuration)."""


class NeuronError(OptionError):
    """The vendor's packages or a device are not there."""


def cores(target: str, devices: Path = Path("/dev")) -> int:
    """The number of cores behind the device files `neuron0`, `neuron1`, …"""
    found = [file for file in devices.glob("neuron*") if re.fullmatch(r"neuron\d+", file.name)]
    return len(found) * CORES_PER_DEVICE.get(target, 1)


def visible_cores(number: int, variable: str) -> list[int]:
    """The cores that an environment variable leaves to this process, such as 0-3,6; without one,
    all of them. Raises NeuronError.
    """
    try:
        ends = [list(map(int, part.split("-"))) for part in variable.split(",") if part.strip()]
        found = {core for each in ends for core in range(each[0], each[-1] + 1)} if ends else None
    except ValueError:
        found = set()
    chosen = [core for core in range(number) if found is None or core in found]
    if not chosen:
        raise NeuronError(
            f"{VISIBLE_CORES} leaves none of the cores",
            expected=f"some of 0-{number - 1}",
            got=variable,
        )
    return chosen


def installed() -> dict[str, str]:
    """The version of each of the vendor's packages. Raises NeuronError."""
    try:
        return {name: version(name) for name in PACKAGES}
    except PackageNotFoundError as missing:
        raise NeuronError(
            f"the package {missing.name} is not installed", expected=", ".join(PACKAGES),
            hint="install the AWS Neuron SDK, or use --runner interpreter; see docs/device.md",
        ) from None  # fmt: skip
