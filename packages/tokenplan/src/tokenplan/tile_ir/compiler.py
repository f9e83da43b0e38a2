"""The real compiler and the tools that read its binaries, where they are installed."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from shutil import which
from time import perf_counter

from neuroncore.confinement.supervision import CONFINED
from neuroncore.errors import LaunchError
from tokenplan.tile_ir.bytecode import Module

TIME_LIMIT = 60.0
"""Seconds that a compilation may take."""
INSTALL = "pip install 'tokenplan[tileir]'"


class CompilerError(LaunchError):
    """tileiras is absent, rejected the bytecode, crashed or took too long."""

    def __init__(self, what: str, *, got: str | None = None, hint: str | None = None) -> None:
        super().__init__(what, got=got, hint=hint)
        self.place = None  # of the bytecode, not of a line that is running


class RejectionError(CompilerError):
    """tileiras rejects the bytecode, and would again."""


@dataclass(frozen=True, slots=True)
class Remark:
    """A message of the compiler on one operation, by its debug location."""

    name: str
    line: int
    column: int
    text: str


@dataclass(frozen=True, slots=True)
class Compiled:
    """A binary and what is known of it."""

    cubin: bytes = field(repr=False)
    remarks: tuple[Remark, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Statistics:
    """Static counts of a binary's instructions and resources."""

    instructions: Counter[str] = field(repr=False)
    """By mnemonic without its suffixes, such as BAR."""
    names: Counter[str] = field(repr=False)
    """By the whole mnemonic, such as BAR.SYNC.DEFER_BLOCKING."""
    registers: int
    shared_bytes: int

    @property
    def barriers(self) -> int:
        """CTA barriers."""
        return sum(count for name, count in self.names.items() if name.startswith("BAR.SYNC"))

    @property
    def total(self) -> int:
        """Instructions."""
        return self.names.total()


@cache
def tool(name: str) -> Path | None:
    """A program of the CUDA wheels of this environment, or of the search path."""
    for folder in sorted(Path(sysconfig.get_path("purelib")).glob("nvidia/cu*/bin"), reverse=True):
        if (folder / name).is_file():
            return folder / name
    found = which(name)
    return Path(found) if found else None


def missing(*names: str) -> str | None:
    """Why the programs cannot be used: a sentence, or None where all are there."""
    absent = [name for name in names or ("tileiras",) if tool(name) is None]
    return f"{' and '.join(absent)} not installed: {INSTALL}" if absent else None


@cache
def version() -> str:
    """The compiler's version, such as 13.5.37."""
    found = re.search(r"V([\d.]+)", _run("tileiras", ["--version"], TIME_LIMIT).stdout)
    if found is None:
        raise CompilerError("tileiras does not report its version")
    return found[1]


_OF_THE_MACHINE = [os.strerror(code) for code in (errno.ENOSPC, errno.ENOMEM, errno.EMFILE,
                   errno.EIO, errno.EACCES, errno.EDQUOT)]  # fmt: skip
"""Texts of errors whose reason is the machine."""
_REMARKS = ("--remarks=all", "--remark-format=yaml", "--remarks-output-file")


def compile_bytecode(
    data: bytes, target: str, options: Sequence[str] = (), seconds: float = TIME_LIMIT,
    parent: Path | None = None,
) -> Compiled:  # fmt: skip
    """The binary of a bytecode file for `target` (sm_90 …), with the remarks of the compiler.

    Temporary files are stored in `parent`. Raises CompilerError with its message where it rejects
    the file, crashes or takes longer than `seconds`.
    """
    with tempfile.TemporaryDirectory(prefix="tokenplan-", dir=parent) as folder:
        source, cubin = Path(folder) / "kernel.tileirbc", Path(folder) / "kernel.cubin"
        source.write_bytes(data)
        remarks = Path(folder) / "remarks.yaml"
        arguments = [f"--gpu-name={target}", "-o", str(cubin), *options, *_REMARKS, str(remarks)]
        began = perf_counter()
        done = _run("tileiras", [*arguments, str(source)], seconds, folder)
        took = perf_counter() - began
        if done.returncode or not cubin.is_file():
            text = (done.stderr + done.stdout).strip()
            is_final = done.returncode > 0 and not any(map(text.__contains__, _OF_THE_MACHINE))
            kind = RejectionError if is_final else CompilerError
            raise kind(f"tileiras {_ending(done.returncode)} for {target}", got=text[:2000] or None)
        reported = remarks.read_text("utf-8") if remarks.is_file() else ""
        return Compiled(cubin.read_bytes(), remarks_of(reported), took)


def _ending(code: int) -> str:
    if code < 0:
        return f"crashed with signal {-code}"
    return "rejected the bytecode" if code else "made no binary"


_REMARK = re.compile(
    r"^Name: +(?P<name>\w+)\n"
    r"(?:DebugLoc: .*?Line: (?P<line>\d+), Column: (?P<column>\d+).*\n)?"
    r"(?P<rest>(?:[^.-].*\n|- .*\n|  .*\n)*)",
    re.MULTILINE,
)

_LOCATION = re.compile(r"loc\(.*?\): ")


def remarks_of(yaml: str) -> tuple[Remark, ...]:
    """The remarks of the compiler's YAML file, each once."""
    found = {}
    for match in _REMARK.finditer(yaml):
        notes = re.findall(r"^  - (\w+): +(.*)$", match["rest"], re.MULTILINE)
        values = [
            _LOCATION.sub("", value.strip("'")) for name, value in notes if name != "RemarkId"
        ]
        text = "; ".join(dict.fromkeys(values))
        line, column = int(match["line"] or 0), int(match["column"] or 0)
        found[Remark(match["name"], line, column, text)] = None
    return tuple(found)


def by_operation(module: Module, remarks: Sequence[Remark]) -> Iterator[tuple[str, int, Remark]]:
    """Each remark with the operation that has its debug location: name and number, as `emit` counts
    the operations of a function; number 0 for the function itself."""
    at = {
        (op.place.line, op.place.column): (op.name, op.place.column)
        for function in module.functions
        for op in function.body.walk()
        if op.place
    }
    name = module.functions[0].name if module.functions else ""
    return ((*at.get((found.line, found.column), (name, 0)), found) for found in remarks)


def statistics(cubin: bytes, parent: Path | None = None) -> Statistics:
    """Counts of a binary; raises CompilerError where the tools are missing or fail."""
    with tempfile.TemporaryDirectory(prefix="tokenplan-", dir=parent) as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        listing = _checked("nvdisasm", ["-c", "-ndf", str(path)], folder)
        usage = _checked("cuobjdump", ["-res-usage", str(path)], folder)
    names = Counter(_INSTRUCTION.findall(listing))
    short: Counter[str] = Counter()
    for name, count in names.items():
        short[name.partition(".")[0]] += count
    return Statistics(short, names, _usage(usage, "REG"), _usage(usage, "SHARED"))


_INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)")


def _usage(text: str, name: str) -> int:
    return max(map(int, re.findall(rf"\b{name}:(\d+)", text)), default=0)


def _checked(name: str, arguments: list[str], folder: str) -> str:
    done = _run(name, arguments, TIME_LIMIT, folder)
    if done.returncode:
        raise CompilerError(f"{name} failed", got=done.stderr.strip()[:500])
    return done.stdout


def _run(
    name: str, arguments: list[str], seconds: float, folder: str = ""
) -> subprocess.CompletedProcess[str]:
    """A tool that ends with this process, and its temporary files in `folder`."""
    path = tool(name)
    if path is None:
        raise CompilerError(f"{name} is not installed", hint=INSTALL)
    try:
        done = _completed(
            [*_ends_with_parent(), str(path), *arguments], seconds,
            os.environ | ({"TMPDIR": folder} if folder else {}),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise CompilerError(f"{name} took longer than {seconds:g} s and was stopped") from None
    except OSError as wrong:
        raise CompilerError(f"{name} cannot be run: {wrong.strerror}") from None
    if done.returncode in _NOT_EXECUTED:
        raise CompilerError(f"{name} cannot be run", got=done.stderr.strip() or None)
    return done


def _completed(
    command: Sequence[str], seconds: float, variables: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """The outcome; where the caller stops waiting, what the command has started ends with it."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
        env=variables, start_new_session=True,
    ) as running:  # fmt: skip
        try:
            out, errors = running.communicate(timeout=seconds)
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, running.returncode, out, errors)


_NOT_EXECUTED = (126, 127)
"""Exit codes of setpriv for a program that is not executable or is absent."""


def _ends_with_parent() -> list[str]:
    """The program of util-linux that starts another one with this signal of its parent's end.

    A function before exec would need a fork, whose hooks ignore exceptions of signal handlers. The
    supervisor of a confined process ends its children.
    """
    is_needed = sys.platform == "linux" and CONFINED not in os.environ
    found = which("setpriv") if is_needed else None
    return [found, "--pdeathsig", "KILL", "--"] if found else []
