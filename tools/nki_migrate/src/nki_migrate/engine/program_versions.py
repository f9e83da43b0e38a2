"""The versions of the kernels of a program, for `nki-run --nki auto`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from neuroncore.machine.backend import Detected
from nki_migrate.engine.version_detection import detect
from nki_migrate.facts.dialects import oldest_possible
from nki_migrate.files.sources import UnreadableSourceError, decode
from nki_migrate.index import FileIndex, Source


def detect_versions(files: Sequence[Path]) -> list[Detected]:
    """Every kernel of the files that names something of NKI; unreadable files hold none."""
    return [found for file in files for found in _of_file(file)]


def _of_file(file: Path) -> Iterator[Detected]:
    try:
        index = FileIndex(Source(decode(file.read_bytes()).text, str(file)))
    except (OSError, UnreadableSourceError, SyntaxError, ValueError, RecursionError):
        return
    for function in index.functions.values():
        dialect = detect(function, index)
        version = dialect.name.partition("/")[0]
        if dialect.start is not None:
            needs = version if version == "0.1" else oldest_possible(function.node, index)[0]
            place = f"{file}:{function.node.lineno}"
            yield Detected(place, function.name, version, dialect.why, needs)
