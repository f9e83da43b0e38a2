"""Kernel programs: a kernel as data that prints, parses and runs without a language."""

from typing import TYPE_CHECKING

from neuroncore.findings import Finding
from neuroncore.integers.affine import Affine
from neuroncore.lazy_names import lazy_names
from neuroncore.program.ir.constants import constant_buffer, elements_of
from neuroncore.program.ir.effects import CallEffects, call_effects
from neuroncore.program.ir.naming import assigned_name, with_canonical_names
from neuroncore.program.ir.nodes import (
    Access,
    Allocate,
    Buffer,
    Call,
    Indirect,
    Loop,
    Statement,
    make_call,
    whole,
)
from neuroncore.program.ir.program import Program, print_program
from neuroncore.program.ir.subscripts import Slice, access_at, subscript
from neuroncore.program.ir.traversal import accesses, calls, map_accesses, walk
from neuroncore.program.loop_rerolling.reroll import reroll
from neuroncore.program.recording.core_recorder import CoreRecorder
from neuroncore.program.recording.recorder import Recorder
from neuroncore.program.verification.liveness import Life, Peak, lives, peaks
from neuroncore.program.verification.verify import check, verify

if TYPE_CHECKING:
    from neuroncore.program.emission.emit import emit
    from neuroncore.program.emission.legalization import without_division
    from neuroncore.program.execution.execute import execute_program
    from neuroncore.program.parsing.parser import parse_program
    from neuroncore.program.recording.capture import capture

__all__ = [
    "Access",
    "Affine",
    "Allocate",
    "Buffer",
    "Call",
    "CallEffects",
    "CoreRecorder",
    "Finding",
    "Indirect",
    "Life",
    "Loop",
    "Peak",
    "Program",
    "Recorder",
    "Slice",
    "Statement",
    "access_at",
    "accesses",
    "assigned_name",
    "call_effects",
    "calls",
    "capture",
    "check",
    "constant_buffer",
    "elements_of",
    "emit",
    "execute_program",
    "lives",
    "make_call",
    "map_accesses",
    "parse_program",
    "peaks",
    "print_program",
    "reroll",
    "subscript",
    "verify",
    "walk",
    "whole",
    "with_canonical_names",
    "without_division",
]

__getattr__, _ = lazy_names(
    __name__,
    {
        "emission.emit": "emit",
        "emission.legalization": "without_division",
        "execution.execute": "execute_program",
        "parsing.parser": "parse_program",
        "recording.capture": "capture",
    },
)
