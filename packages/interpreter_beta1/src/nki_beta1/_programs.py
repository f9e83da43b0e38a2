"""The programs of a grid: what one of them makes on chip is none of the next."""

from __future__ import annotations

from copy import copy
from typing import Any

from neuroncore.launch import running
from nki_beta1._emit import Core
from nki_beta1._results import tensors_in


def core_of_program(arguments: Any) -> Core:
    """The core on which the program runs that begins now; the first one's is that of the launch.

    A tensor knows its core, so one that Python code keeps from an earlier program is refused. Those
    that all programs have, the `arguments` and outputs, come along. What is known of tensors is
    known of them on every core.
    """
    launch = running("a program of the grid")
    core: Any = launch.core
    if any(launch.program):
        core = launch.core = copy(core)
        for tensor in (*tensors_in(arguments), *launch.shared):
            tensor.core = core
    return core
