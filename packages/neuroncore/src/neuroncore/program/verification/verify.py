"""Finds everything that is wrong with a program, with the lines that it came from."""

from __future__ import annotations

from neuroncore.enums import MemorySpace
from neuroncore.errors import LaunchError
from neuroncore.findings import Finding
from neuroncore.machine.core import NeuronCore
from neuroncore.options import Options
from neuroncore.program.ir.nodes import Call
from neuroncore.program.ir.program import Program
from neuroncore.program.ir.traversal import visit
from neuroncore.program.verification.findings import (
    as_violation,
    found,
    need_program,
    raise_findings,
)
from neuroncore.program.verification.initialization import Legal, uninitialised
from neuroncore.program.verification.limits import judged
from neuroncore.program.verification.liveness import over_capacity
from neuroncore.program.verification.structure import structure
from neuroncore.surface import VERSIONS

STRICT = Options(start_partition="error")
"""A start partition that may not compile is a finding."""

LARGEST = "trn3"  # a program for an unknown target is judged by what no generation takes


def verify(program: Program, options: Options | None = None, content: bool = True) -> list[Finding]:
    """Every violation: structure, limits of all calls in all iterations, capacity, content.

    `options` None is STRICT. Without `content`, reads of what nothing has written are let pass.
    Nothing is executed.
    """
    findings, legal, core = _calls(program, options or STRICT)
    findings += over_capacity(program, core.target, core.free_bytes_of(MemorySpace.sbuf))
    if content:
        findings += uninitialised(program, legal)
    return findings


def check(program: Program, options: Options | None = None, content: bool = True) -> None:
    """Raise ProgramError listing all violations that `verify` finds; nothing where it is legal."""
    raise_findings(program, verify(program, options, content))


def check_calls(program: Program, options: Options | None = None) -> None:
    """As `check`, for structure and the limits of calls alone."""
    raise_findings(program, _calls(program, options or Options())[0])


def _calls(program: Program, options: Options) -> tuple[list[Finding], Legal, NeuronCore]:
    """Findings about structure and calls, the calls that are legal, the core."""
    need_program(program)
    findings: list[Finding] = []
    try:
        core = NeuronCore(program.target, options, watchers=())
    except LaunchError as unknown:
        findings.append(found(None, as_violation(unknown), program.places.get("target")))
        core = NeuronCore(LARGEST, options, watchers=())
    nki = _version(program)
    more, sound = structure(program, core)
    findings += more
    buffers, legal = program.buffers(), Legal()
    for statement, ranges in visit(program.body):
        if isinstance(statement, Call) and id(statement) in sound:
            wrong, made = judged(statement, ranges, buffers, core, nki)
            if made is not None and not wrong:
                legal[id(statement)] = made
            findings += wrong
    return findings, legal, core


def _version(program: Program) -> str:
    """The version that judges it: the newest where its own is none."""
    return program.nki if program.nki in VERSIONS else VERSIONS[-1]
