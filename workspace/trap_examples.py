"""Runs the examples of the catalogue of traps."""

from __future__ import annotations

import linecache
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nki_runtime
from neuroncore.checks import CHECKS, Finding, watching
from neuroncore.checks.traps import Example, head_of
from neuroncore.errors import KernelError
from neuroncore.options import Options


@dataclass(frozen=True, slots=True)
class Outcome:
    """What checks found in an example and its run, and the error of the kernel that ended it."""

    findings: tuple[Finding, ...]
    error: KernelError | None = None


def run(name: str, example: Example, **options: Any) -> Outcome:
    """Run an example as the file `name` under all checks."""
    text = f"{head_of(example)}\n\n{example.text}".lstrip("\n")
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    backend = "beta1" if example.nki == "0.1" else "beta2"
    error = None
    with warnings.catch_warnings(), watching() as report:
        warnings.simplefilter("ignore")
        with nki_runtime.use(backend, nki=example.nki, target=example.target, **options):
            try:
                exec(compile(text, name, "exec"), {"__name__": "example"})
            except KernelError as rejected:
                error = rejected
    return Outcome((*_of_source(name, text, example.nki), *report), error)


def _of_source(name: str, text: str, nki: str) -> list[Finding]:
    """What checks find in the text, without running it."""
    with TemporaryDirectory() as folder:
        script = Path(folder) / name
        script.write_text(text, encoding="utf-8")
        readers = [check.source for check in CHECKS.values() if check.source is not None]
        found = [finding for read in readers for finding in read(script, nki, Options())]
    return [replace(f, place=replace(f.region, path=name)) for f in found]
