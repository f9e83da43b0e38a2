"""Records, in the child, what the expressions of an old kernel were: `nki-run --record` for a case.

The file under test is loaded by `stand_in`, so the command itself cannot be used.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from neuroncore.machine.observe import watched_by
from nki_runtime.recording.instrument import instrumented_tree, mentions_nki
from nki_runtime.recording.recorder import Recorder

_RECORDER = Recorder()
_FACTS = Path.cwd().parent / "facts_0000.json"  # in the job's folder, where a job's facts lie


def parse(source: bytes, path: str) -> ast.Module:
    """The tree of a module, with expressions that report where it could hold kernels."""
    return instrumented_tree(source, path) if mentions_nki(source) else ast.parse(source, path)


@contextmanager
def recording(top: str) -> Iterator[None]:
    """Leave what has been seen so far with the job's results, with paths relative to `top`."""
    with watched_by(_RECORDER):
        yield
    text = json.dumps(_RECORDER.facts(Path(top)))
    _FACTS.write_text(text, encoding="utf-8")
