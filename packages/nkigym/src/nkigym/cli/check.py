"""`nkigym check`: certificates, schedules, programs and sources against their origins."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from neuroncore.commands.parser import add_specs, add_target
from neuroncore.commands.streams import stdout_of_user
from neuroncore.documents import parse_json, read_utf8
from neuroncore.errors import KernelError, OptionError
from neuroncore.program import Program, check, parse_program
from nkigym.checker import CertificateFileError, check_kernels, check_step, read_certificate
from nkigym.checker.findings import certified_program
from nkigym.tiles import TileProgram
from nkigym.transforms import TransformError, TransformStep, certify
from nkigym.tuning.loading import load_kernel
from nkigym.tuning.task import TuningTask, problem, tuning_task
from nkigym.tuning.verification import VerificationError


def add_options(parser: argparse.ArgumentParser) -> None:
    """The file, and what it is compared with."""
    add = parser.add_argument
    add("file", metavar="FILE|FILE.py:KERNEL",
        help="a certificate or schedule (JSON), a program, a tile program, NKI source")  # fmt: skip
    add("--of", metavar="MODULE:FUNCTION|FILE",
        help="its root: schedules are replayed from it, kernels compared with it")  # fmt: skip
    add_specs(parser, "an argument of --of, or of the kernel without --of; once for each")
    add_target(parser, None, " (default: trn2, or the program's)")
    add("--nki", metavar="VERSION", help="of the source")
    add("--output-format", choices=("text", "json"), default="text")


def run(given: argparse.Namespace) -> int:
    """Prints what is wrong, or what was checked; 1 where something is wrong."""
    with stdout_of_user():
        findings, checked = _checked(given)
    if given.output_format == "json":
        print(json.dumps({"file": given.file, "findings": findings, "checked": checked}))
    else:
        print("\n".join(findings or checked))
    return 1 if findings else 0


def _checked(given: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Findings, and the parts that were checked."""
    if Path(given.file).suffix != ".json":
        return _kernel(given)
    data = _json(Path(given.file))
    if isinstance(data, Mapping):
        _check_alone(given, given.file, "a certificate", ("of", "spec", "target", "nki"))
    if isinstance(data, Mapping) and "format" in data:
        found = read_certificate(Path(given.file).read_text("utf-8")).findings()
        return list(map(str, found)), ["every claim about the tiles of the program holds"]
    if isinstance(data, Mapping):
        found = [*map(str, check_step(data)), *_other_claims(data)]
        return found, [f"{len(data['claims'])} claims hold in all iterations"]
    if isinstance(data, list):
        return _schedule(given, data)
    raise CertificateFileError(
        f"{given.file} is neither a certificate nor a schedule",
        expected="an object of a program and claims, or a list of steps",
    )


def _check_alone(given: argparse.Namespace, file: str, what: str, names: Sequence[str]) -> None:
    """Raise OptionError for options of a file that contains its program."""
    for name in names:
        if getattr(given, name):
            raise OptionError(
                f"{file} is {what}, which contains its program", expected=f"no --{name}"
            )


def _other_claims(data: Mapping[str, Any]) -> list[str]:
    """Whether the step needs other claims in the program of the certificate."""
    if not isinstance(data.get("program"), str) or "step" not in data:
        raise CertificateFileError("not a certificate of a step: no program, or no step")
    with certified_program():
        program = parse_program(data["program"])
    check(program)
    step = _step(TransformStep.from_json, data["step"], "the step of the certificate")
    try:
        made = certify(program, step)
    except TransformError as wrong:
        return [f"the step is not one of the program: {wrong}"]
    same = json.loads(json.dumps(made.to_json()["claims"])) == data["claims"]
    return [] if same else ["the step needs other claims"]


def _step(read: Callable[[Any], Any], data: Any, what: str) -> Any:
    """The step that `data` is. Raises CertificateFileError where it is not one."""
    try:
        return read(data)
    except (TransformError, ValueError) as wrong:
        raise CertificateFileError(f"{what} is malformed", got=str(wrong)) from None


def _json(file: Path) -> Any:
    """The content of a JSON file. Raises CertificateFileError."""
    try:
        return parse_json(read_utf8(file))
    except OSError as wrong:
        raise CertificateFileError(f"can't open {str(file)!r}: {wrong.strerror}") from None
    except ValueError as wrong:
        raise CertificateFileError(f"{file} is not JSON", got=str(wrong)) from None


def _root(given: argparse.Namespace) -> TuningTask:
    if given.of is None:
        raise OptionError(
            f"{given.file} is a schedule, which is replayed from its root",
            expected="--of, with a --spec for each argument",
        )  # fmt: skip
    if not _takes_specs(given.of):
        _check_alone(given, given.of, "a program", ["spec"])
    function, specs = load_kernel(given.of, given.spec, given.target, given.nki)
    return tuning_task(function, specs, given.target, given.nki, None)


def _schedule(given: argparse.Namespace, schedule: Sequence[Any]) -> tuple[list[str], list[str]]:
    """Replayed, certified, executed."""
    task = _root(given)
    for number, data in enumerate(schedule):
        _step(task.space.read_step, data, f"step {number} of {given.file}")
    try:
        checks = task.verify_winner(task.replayed(schedule), schedule)
    except VerificationError as wrong:
        return (wrong.got or wrong.what).splitlines(), []
    except KernelError as wrong:
        if wrong.place == KernelError("").place:
            wrong.place = None  # of the command line, not of a program
        return [str(wrong)], []
    return [], [str(check) for check in checks]


def _kernel(given: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Legal; with --of, every element of every result is the same value."""
    if given.of is None and not _takes_specs(given.file):
        _check_alone(given, given.file, "a program", ["spec"])
    root = None if given.of is None else _root(given).root
    specs = given.spec
    if root is not None:
        specs = [f"{b.dtype.name}{list(b.shape)}" for b in root.parameters]
    kernel = _program(given, specs)
    if root is None:
        return [], [f"{kernel.name} is legal for {kernel.target}, NKI {kernel.nki}"]
    found = check_kernels(root, kernel)
    return list(map(str, found)), [f"every result of {kernel.name} equals that of {root.name}"]


def _takes_specs(name: str) -> bool:
    """Whether it names a function or kernel, not a file that contains a program."""
    return ":" in name or name.endswith(".py")


def _program(given: argparse.Namespace, specs: Sequence[str]) -> Program:
    """The kernel program of the file, checked."""
    shapes = specs if _takes_specs(given.file) else ()
    loaded, wanted = load_kernel(given.file, shapes, given.target, given.nki)
    if isinstance(loaded, TileProgram):
        return tuning_task(loaded, (), given.target, given.nki, None).root
    return problem(loaded, wanted, given.target, given.nki).root
