"""The languages that a command line requests, from its options and its program's imports."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, get_args, get_type_hints

from neuroncore.errors import LaunchError
from neuroncore.machine.backend import VERSION_DETECTOR_GROUP, Backend, Choice, Detected
from neuroncore.options import Options
from neuroncore.surface import VERSIONS
from nki_runtime.cli.programs import (
    LANGUAGE_OF_ROOT,
    Program,
    detect_languages,
    program_files,
)
from nki_runtime.switch.choice import DEFAULT_BACKEND, ChoiceRequest
from nki_runtime.switch.errors import ChoiceError
from nki_runtime.switch.registry import backends
from nki_runtime.switch.use import resolve_choice

AUTO = "auto"
"""The version that the kernels of a program are written for."""


def requests_of(given: argparse.Namespace, program: Program) -> list[ChoiceRequest]:
    """The request for each switch to set, the last one innermost.

    A program may import both languages; then both answer, each under its own name, and `--nki` is
    for the one that speaks it. Raises ChoiceError where none does, LaunchError for a mistake in
    an option.
    """
    options = dict(_parse_option(text) for text in given.option)
    return [
        ChoiceRequest(backend, version, given.target, options, "nki-run")
        for backend, version in _languages(given, program)
    ]


def choices(given: argparse.Namespace, program: Program) -> list[Choice]:
    """The choices that `use` would make of each request, without making them."""
    return [resolve_choice(request) for request in requests_of(given, program)]


def _languages(given: argparse.Namespace, program: Program) -> list[tuple[str | None, str | None]]:
    """Backend and version of each switch."""
    if given.backend != "auto":
        return [(given.backend, _version(given, program, given.backend))]
    source = None if os.environ.get("NKI_RUNTIME") else program.source()
    found = [] if source is None else detect_languages(source, [program.folder()])
    if not found:
        backend = os.environ.get("NKI_RUNTIME") or DEFAULT_BACKEND
        return [(None, _version(given, program, backend))]
    if given.nki is None or given.nki == AUTO:
        return [(backend, _version(given, program, backend)) for backend in found]
    speaking = [b for b in found if given.nki in backends()[b].versions]
    if not speaking:
        raise _unspoken(given.nki, found)
    return [*((b, None) for b in found if b not in speaking), *((b, given.nki) for b in speaking)]


def _version(given: argparse.Namespace, program: Program, backend: str) -> str | None:
    """The requested version for a backend, detected where that is requested."""
    source = program.source()
    if given.nki != AUTO or source is None:
        return None if given.nki == AUTO else given.nki
    return detected_version([*program_files(source, [program.folder()])], backends()[backend])


def _unspoken(version: str, found: Sequence[str]) -> ChoiceError:
    """The error where no language that the program imports has that version."""
    roots = {backend: root for root, backend in LANGUAGE_OF_ROOT.items()}
    imported = ", ".join(roots[backend] for backend in found)
    others = [b for b in roots if b not in found and b in backends()]
    speaks = next((b for b in others if version in backends()[b].versions), None)
    hint = "leave the version out, or name one of these"
    if speaks is not None:
        hint = f"NKI {version} is {speaks}, behind `import {roots[speaks]}`; " + hint
    return ChoiceError(
        f"no language that the program imports ({imported}) speaks NKI {version}",
        expected=f"one of {', '.join(v for b in found for v in backends()[b].versions)}",
        got=repr(version),
        hint=hint,
    )


# -- the version of a program's kernels ----------------------------------------------------------
def detected_version(files: Sequence[Path], backend: Backend) -> str:
    """The version of the kernels in the files that a backend runs; printed with the reason.

    Detectors are found by their entry point. The oldest version, which has everything that each
    kernel needs; the backend's default where no kernel is found. Raises ChoiceError where no
    version runs all kernels, or without a detector.
    """
    found = [d for d in _detect(files) if d.version in backend.versions or d.version == "mixed"]
    oldest = min(found, key=lambda d: _place(d.version), default=None)
    if oldest is None:
        _say(f"NKI {backend.default_version}: no kernel is found in the program's own files")
        return backend.default_version
    newer = next((d for d in found if _place(d.needs) > _place(oldest.version)), None)
    if newer is not None:
        raise ChoiceError(
            "no version of NKI has everything that the kernels use", operand="nki",
            expected=f"{oldest.version}: {oldest.kernel} ({oldest.place}): {oldest.why}",
            got=f"{newer.needs}: {newer.kernel} ({newer.place}): {newer.why}",
            hint="name a version with --nki, or migrate the older kernel",
        )  # fmt: skip
    _say(f"NKI {oldest.version}: {oldest.place}: {oldest.kernel}: {oldest.why}")
    return oldest.version


def _place(version: str) -> int:
    return VERSIONS.index(version) if version in VERSIONS else -1


def _say(text: str) -> None:
    sys.stderr.write(f"nki-run: {text}\n")


def _detect(files: Sequence[Path]) -> list[Detected]:
    points = list(entry_points(group=VERSION_DETECTOR_GROUP))
    if not points:
        raise ChoiceError(
            "--nki auto: no distribution here detects versions", expected="nki-migrate",
            hint="pip install nki-migrate, or name a version such as --nki 0.7",
        )  # fmt: skip
    return points[0].load()(files)


# -- options by name ------------------------------------------------------------------------------


def _parse_option(text: str) -> tuple[str, Any]:
    """`name=value` as a field of Options; make_options rejects unknown names."""
    name, equals, value = text.partition("=")
    if not equals:
        raise LaunchError(f"--option {text} has no value", expected="NAME=VALUE")
    kind = get_type_hints(Options).get(name.replace("-", "_"), str)
    for accepted, read in _READERS.items():
        if kind == accepted:
            return name.replace("-", "_"), read(name, value)
    whole = {str(choice): choice for choice in get_args(kind) if isinstance(choice, int)}
    return name.replace("-", "_"), whole.get(value, value)


def _read_bool(name: str, value: str) -> bool:
    if value.lower() not in ("1", "0", "true", "false"):
        raise LaunchError(f"option {name} is on or off", expected="true or false", got=value)
    return value.lower() in ("1", "true")


def _read_size(name: str, value: str) -> int | None:
    if not value.isdecimal() and value != "none":
        raise LaunchError(f"option {name} is a size", expected="bytes, or none", got=value)
    return None if value == "none" else int(value)


def _read_count(name: str, value: str) -> int:
    if not value.isdecimal():
        raise LaunchError(f"option {name} is a count", expected="an int from 0 on", got=value)
    return int(value)


_READERS: dict[Any, Callable[[str, str], Any]] = {
    bool: _read_bool, int: _read_count, int | None: _read_size,
}  # fmt: skip
