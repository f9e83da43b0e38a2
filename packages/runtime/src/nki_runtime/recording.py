"""What `nki-run --record` does, for a program that loads a file and calls its functions itself."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from neuroncore.observe import watched_by
from nki_runtime._instrument import compile_instrumented, instrumented
from nki_runtime._recorder import Recorder

__all__ = ["instrumented", "load", "recorded"]


def load(file: Path) -> ModuleType:
    """The file as a module under its own name, its functions ready to be recorded.

    Inside `instrumented()` the modules that it imports are, too. Raises SyntaxError, and what the
    file's own statements raise.
    """
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None, f"{file}: no Python file"
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    exec(compile_instrumented(file.read_bytes(), str(file)), vars(module))
    return module


@contextmanager
def recorded(documents: list[Mapping[str, Any]], relative_to: Path) -> Iterator[None]:
    """Append the facts of the kernels that run inside the block, also when it ends in an error."""
    recorder = Recorder()
    try:
        with watched_by(recorder):
            yield
    finally:
        documents.append(recorder.facts(relative_to))
