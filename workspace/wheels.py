"""Build every package and install each wheel alone, on every supported Python that runs here.

"Alone" means: a clean environment with the wheel, the wheels of ours that it requires, and the
locked versions of everything else. Prints one line per package and Python; exit 1 on a fault.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from email.parser import HeaderParser
from itertools import product
from pathlib import Path

from archives import UV
from members import ROOT, Member, members
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from pythons import SUPPORTED, find

PROBE = Path(__file__).with_name("wheel_probe.py")
# A bound without a wheel is a fault, not a build of minutes. Python compiles what it imports.
PIP_OPTIONS = ("--quiet", "--only-binary", ":all:", "--no-compile")
NO_DOWNLOADS = os.environ | {"UV_PYTHON_DOWNLOADS": "never"}


def uv(*arguments: str | Path, cwd: Path = ROOT) -> None:
    """Run uv; a failure raises `CalledProcessError` with what it said."""
    command = [*UV, "--quiet", *map(str, arguments)]
    subprocess.run(command, cwd=cwd, env=NO_DOWNLOADS, check=True, capture_output=True, text=True)


def build(into: Path) -> dict[str, Path]:
    """Build source distributions, wheels from those, and return the wheels by package name."""
    uv("build", "--all-packages", "--out-dir", into)
    return {canonicalize_name(path.name.split("-")[0]): path for path in into.glob("*.whl")}


def requirements(wheel: Path, python: str | None = None) -> list[Requirement]:
    """What `wheel` requires without extras, on a version of Python (this one's by default)."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        metadata = HeaderParser().parsestr(archive.read(name).decode())
    found = [Requirement(line) for line in metadata.get_all("Requires-Dist", [])]
    there = {"python_version": python, "python_full_version": f"{python}.0"} if python else {}
    given = {"extra": "", **there}
    return [r for r in found if r.marker is None or r.marker.evaluate(given)]


def closure(name: str, wheels: Mapping[str, Path]) -> set[str]:
    """`name` and the packages of ours that it requires, directly or not.

    They are installed by path: a public package that happens to have our name is never downloaded.
    """
    needed, pending = set[str](), [name]
    while pending:
        if (current := pending.pop()) not in needed:
            needed.add(current)
            required = [canonicalize_name(r.name) for r in requirements(wheels[current])]
            pending += [other for other in required if other in wheels]
    return needed


def try_wheel(member: Member, python: Path, wheels: dict[str, Path], locked: Path) -> str:
    """Install `member` alone and probe it; returns the faults, empty when there is none."""
    chosen = [wheels[name] for name in sorted(closure(member.name, wheels))]
    return install_and_probe(chosen, [member], python, ("--constraint", locked))


def install_and_probe(
    chosen: Sequence[Path],
    probed: Sequence[Member],
    python: Path,
    options: Sequence[str | Path] = (),
    pip: Path | None = None,
) -> str:
    """Install wheels into a clean environment, by uv or by the pip of a Python; their faults."""
    with tempfile.TemporaryDirectory() as scratch:
        environment = Path(scratch) / "env"
        interpreter = environment / ("Scripts" if os.name == "nt" else "bin") / "python"
        try:
            uv("venv", "--python", python, environment)
            if pip:
                install = ("-m", "pip", "--python", interpreter, "install", *PIP_OPTIONS)
                _run(pip, *install, *options, *chosen)
            else:
                uv("pip", "install", "--python", interpreter, *options, *chosen)
        except subprocess.CalledProcessError as error:
            return str(error.stderr).strip()
        return "\n".join(filter(None, (_probe(interpreter, m, scratch) for m in probed)))


def _probe(interpreter: Path, member: Member, scratch: str) -> str:
    command = (interpreter, "-I", PROBE, member.name, member.version, member.module)
    done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).strip() if done.returncode else ""


def _run(*command: str | Path) -> None:
    subprocess.run([*map(str, command)], check=True, capture_output=True, text=True)


def export_lock(into: Path) -> Path:
    """The locked versions of what is not ours, as constraints."""
    shape = ("--all-packages", "--all-extras", "--no-dev", "--no-hashes", "--no-emit-workspace")
    uv("export", "--frozen", *shape, "--output-file", into)
    return into


def main() -> int:
    """Build, try every package on every Python, print the table."""
    found = {version: find(version) for version in SUPPORTED}
    for version in (v for v, python in found.items() if python is None):
        print(f"python {version}: none runs on this machine, not checked")
    present = [(version, python) for version, python in found.items() if python is not None]
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(os.cpu_count()) as pool:
        wheels = build(Path(scratch))
        locked = export_lock(Path(scratch) / "locked.txt")
        cases = list(product(members(), present))
        said = list(pool.map(lambda c: try_wheel(c[0], c[1][1], wheels, locked), cases))
    for (member, (version, _)), faults in zip(cases, said, strict=True):
        print(f"{member.name:12} {member.version:8} python {version}  {faults or 'ok'}")
    print(f"{said.count('')} of {len(said)} wheel installations good")
    return 0 if present and not any(said) else 1


if __name__ == "__main__":
    sys.exit(main())
