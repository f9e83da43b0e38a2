"""Kernel programs: a kernel as data that prints, parses and runs without a language."""

from neuroncore.program.affine import Affine
from neuroncore.program.box import Slice, access_at, subscript
from neuroncore.program.capture import capture
from neuroncore.program.content import constant_buffer, elements_of
from neuroncore.program.effects import CallEffects, call_effects
from neuroncore.program.emit import emit
from neuroncore.program.execute import execute_program
from neuroncore.program.findings import Finding
from neuroncore.program.liveness import Life, Peak, lives, peaks
from neuroncore.program.lowering import without_division
from neuroncore.program.naming import assigned_name
from neuroncore.program.nodes import (
    Access,
    Allocate,
    Buffer,
    Call,
    Indirect,
    Loop,
    Program,
    Statement,
    accesses,
    calls,
    make_call,
    map_accesses,
    walk,
    whole,
)
from neuroncore.program.parse import parse_program
from neuroncore.program.record import Recorder
from neuroncore.program.reroll import reroll
from neuroncore.program.text import print_program
from neuroncore.program.verify import check, verify

__all__ = [
    "Access",
    "Affine",
    "Allocate",
    "Buffer",
    "Call",
    "CallEffects",
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
    "without_division",
]
