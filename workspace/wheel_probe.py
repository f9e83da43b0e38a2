"""Run by a clean environment's Python: is the installed distribution what it claims to be?

`python -I wheel_probe.py DISTRIBUTION VERSION MODULE` prints one line per fault. Standard library
only, since nothing else is there.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint, distribution
from importlib.util import find_spec
from pathlib import Path

HOSTS = {"pytest11": "pytest"}
"""Programs that load the entry points of a group, and that a distribution does not require."""


def entry_point_faults(entry: EntryPoint) -> Iterator[str]:
    """It loads; a command also answers --help. Without its host a plugin's module is looked for."""
    if (host := HOSTS.get(entry.group)) and not find_spec(host):
        if not find_spec(entry.module):
            yield f"entry point {entry.group}:{entry.name}: no module {entry.module}"
        return
    try:
        entry.load()
    except Exception as error:
        yield f"entry point {entry.group}:{entry.name} does not load: {error!r}"
        return
    if entry.group == "console_scripts":
        command = (str(Path(sys.executable).parent / entry.name), "--help")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            yield f"{entry.name} --help exits {done.returncode}: {done.stderr.strip()[-300:]}"


def faults(name: str, version: str, module: str) -> Iterator[str]:
    """Everything wrong with the distribution `name`."""
    installed = distribution(name)
    if installed.version != version:
        yield f"installed version is {installed.version}, pyproject says {version}"
    try:
        package = importlib.import_module(module)
    except Exception as error:
        yield f"import {module}: {error!r}"
        return
    if getattr(package, "__version__", version) != version:
        yield f"{module}.__version__ is {package.__version__}, pyproject says {version}"
    if not Path(str(package.__file__)).with_name("py.typed").is_file():
        yield "py.typed is missing: type checkers will ignore the annotations"
    for entry in installed.entry_points:
        yield from entry_point_faults(entry)


if __name__ == "__main__":
    found = list(faults(*sys.argv[1:]))
    print("\n".join(found))
    raise SystemExit(bool(found))
