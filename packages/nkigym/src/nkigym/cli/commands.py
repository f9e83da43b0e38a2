"""The command: a table of subcommands, and how errors are reported."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from types import ModuleType

from neuroncore.commands.parser import Command, make_parser
from neuroncore.commands.running import run_commands
from neuroncore.commands.streams import command_line

_EXAMPLE = """\
examples:
  nkigym enumerate --tiles 2,2,2
  nkigym enumerate --function rmsnorm_matmul --tiles 1,1,2 --transforms data-reuse,call-reuse
  nkigym enumerate --tiles 1,2,3 --transforms data-reuse --output-format json
  nkigym tune mlp.py:mlp --spec 'x=f32[512,1024]' --spec 'w=f32[1024,4096]' --budget 60s -o mlp_k.py
  nkigym tune mlp.py:mlp --spec … --budget 2000 --strategy beam --store found.db
  nkigym sweep examples/gym/sweep.toml --jobs 2
  nkigym best found.db --number 3
  nkigym measure found.db --runner neuron --number 8
  nkigym replay found.db
  nkigym check schedule.json --of mlp.py:mlp --spec …
  nkigym export found.db -o mlp_k.py

The exit code is 1 where there is nothing to enumerate, not everything was found or kept, or a
check fails; 2 for a mistake in the options or in a file of them, a store or a certificate.
"""


def _is_local(given: argparse.Namespace) -> bool:
    """Whether neither a cluster nor a device is used."""
    return getattr(given, "ray", None) is None and getattr(given, "runner", "") != "neuron"


def _enumerate() -> ModuleType:
    from nkigym.cli import enumerate

    return enumerate


def _tune() -> ModuleType:
    from nkigym.cli import tune

    return tune


def _sweep() -> ModuleType:
    from nkigym.cli import sweep

    return sweep


def _check() -> ModuleType:
    from nkigym.cli import check

    return check


def _stored() -> ModuleType:
    from nkigym.cli import stored

    return stored


def _unusable_files() -> tuple[type[Exception], ...]:
    from nkigym.checker import CertificateFileError
    from nkigym.store import StoreError
    from nkigym.sweeps import SweepFileError

    return StoreError, SweepFileError, CertificateFileError


# The modules of subcommands import NumPy and the timeline: 0.3 s of CPU time.
COMMANDS = (
    Command("enumerate", "every program that transforms reach from a tiled function",
            lambda parser: _enumerate().add_options(parser), lambda given: _enumerate().run(given)),
    Command("tune", "the fastest schedule of a function or kernel, checked, as source",
            lambda parser: _tune().add_options(parser), lambda given: _tune().run(given),
            _is_local),
    Command("sweep", "many tunings as one run that can be resumed",
            lambda parser: _sweep().add_options(parser), lambda given: _sweep().run(given),
            _is_local),
    Command("check", "certificates, schedules, programs and sources, checked",
            lambda parser: _check().add_options(parser), lambda given: _check().run(given),
            _is_local),
    Command("show", "the contents of a store",
            lambda parser: _stored().add_show(parser), lambda given: _stored().show(given)),
    Command("best", "the fastest schedules of a kernel in a store",
            lambda parser: _stored().add_best(parser), lambda given: _stored().best(given)),
    Command("measure", "the fastest schedules by the model, by values here, or on a device",
            lambda parser: _stored().add_measure(parser), lambda given: _stored().measure(given),
            _is_local),
    Command("replay", "replay, check and estimate a stored schedule",
            lambda parser: _stored().add_replay(parser), lambda given: _stored().replay(given),
            _is_local),
    Command("export", "a stored schedule's kernel, program or steps",
            lambda parser: _stored().add_export(parser), lambda given: _stored().export(given)),
)  # fmt: skip


MAX_LINES = 5
"""Of a rejection without --verbose."""


def _with_checks(command: Command) -> Command:
    def add_options(parser: argparse.ArgumentParser) -> None:
        command.add_options(parser)
        parser.add_argument("-v", "--verbose", action="store_true", help="rejections in full")

    def run(given: argparse.Namespace) -> int:
        from nkigym.cli.writing import check_files

        check_files(given)
        return command.run(given)

    return replace(command, add_options=add_options, run=run, seconds=inf)


@command_line("nkigym")
def main(argv: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code, or SystemExit from argparse."""
    parser = make_parser("nkigym", "Certified search over schedules of NKI kernels.", _EXAMPLE)
    commands = [_with_checks(command) for command in COMMANDS]
    return run_commands(parser, commands, argv, _unusable_files, max_lines=MAX_LINES)
