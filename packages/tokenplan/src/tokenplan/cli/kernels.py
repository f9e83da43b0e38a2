"""The kernel that the command line names: a program text, or a function that is run to see it."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from neuroncore.commands.function import find_function, parse_name
from neuroncore.commands.user_folder import our_command
from neuroncore.documents import read_utf8, unreadable
from neuroncore.errors import LaunchError, OptionError
from neuroncore.program import Program, parse_program
from neuroncore.program.parsing.transport import program_from_json
from tokenplan.tile_ir import TileKernel

_NEEDED = ("nki_runtime", "nki_beta2")
_DRIVER = Path(__file__).with_name("_record.py")
_FRAME = re.compile(r'  File "(.*)", line \d+')
_OURS = ("tokenplan", "nki_runtime", "nki_beta1", "nki_beta2", "neuroncore")


class UsageError(OptionError):
    """The command line names a kernel or file that does not exist."""


class KernelRunError(LaunchError):
    """The kernel does not run; what the runtime said is in `output`."""

    def __init__(self, output: str) -> None:
        super().__init__("the kernel does not run")
        self.place = None
        self.output = own_lines(output)


def own_lines(traceback: str) -> str:
    """A traceback without the frames of tokenplan and of what runs the kernel."""
    found = map(importlib.util.find_spec, _OURS)
    folders = [Path(spec.origin).parent for spec in found if spec and spec.origin]
    shown, is_ours = [], False
    for line in traceback.splitlines():
        frame = _FRAME.match(line)
        if frame:
            is_ours = any(Path(frame[1]).is_relative_to(folder) for folder in folders)
        elif not line.startswith("    "):
            is_ours = False
        if not is_ours:
            shown.append(line)
    return "\n".join([*shown, ""])


def _text(path: Path) -> str:
    """A program text; UsageError for a file that is none."""
    try:
        return read_utf8(path)
    except (OSError, ValueError) as wrong:
        raise UsageError(f"cannot read {path}: {unreadable(wrong)}") from None


@dataclass(frozen=True, slots=True)
class KernelSource:
    """A kernel on arguments: FILE.py:FUNCTION or MODULE:FUNCTION and what it takes, or a text."""

    name: str
    specs: Sequence[str]
    nki: str
    target: str

    @property
    def is_function(self) -> bool:
        """Whether it is a function to run, whose program is checked on the way."""
        path = Path(self.name)
        return not path.is_file() or path.suffix == ".py"

    def program(self) -> Program | TileKernel:
        """The program, or what a function describes.

        Raises UsageError, NoFunctionError, KernelRunError or ProgramTextError.
        """
        if not self.is_function:
            if self.specs:
                raise UsageError("a program text says its shapes itself", hint="leave out --spec")
            return parse_program(_text(Path(self.name)), self.name)
        parse_name(self.name, "FILE.py:FUNCTION, MODULE:FUNCTION or the file of a program text")
        return self._recorded()

    def _recorded(self) -> Program | TileKernel:
        missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
        if missing:
            raise UsageError(
                f"running a kernel needs {' and '.join(missing)}",
                hint="pip install 'tokenplan[run]'",
            )
        with tempfile.TemporaryDirectory(prefix="tokenplan-") as folder:
            program, mistake, described = (
                Path(folder) / name for name in ("program", "mistake", "described")
            )
            language = "beta1" if self.nki.startswith("0.1") else "beta2"
            options = ("--backend", language, "--nki", self.nki, "--target", self.target)
            named = (str(_DRIVER), folder, self.name, *self.specs)
            command = (*our_command("nki_runtime.cli"), *options, "--shadow", *named)
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if mistake.is_file():
                raise UsageError(mistake.read_text("utf-8", "replace"))
            if described.is_file():
                arguments, named = ast.literal_eval(described.read_text("utf-8"))
                return cast(TileKernel, find_function(parse_name(self.name))(*arguments, **named))
            if done.returncode or not program.is_file():
                raise KernelRunError(done.stdout + done.stderr)
            return program_from_json(program.read_text("utf-8", "replace"))
