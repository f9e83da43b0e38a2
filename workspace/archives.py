"""The archives of a release: built twice to equal bytes, complete, as an index accepts them."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from email.parser import HeaderParser
from pathlib import Path

from members import Member

UV = (sys.executable, "-m", "uv")  # also where no session has put it on PATH
REQUIRED_FIELDS = ("Name", "Version", "Summary", "Requires-Python", "License-Expression",
                   "License-File", "Classifier", "Description-Content-Type")  # fmt: skip


def build_twice(chosen: Sequence[Member], dist: Path) -> list[str]:
    """Build every member into `dist`; the files that a second build does not repeat to the byte."""
    with tempfile.TemporaryDirectory() as scratch:
        for into in (dist, Path(scratch)):
            for member in chosen:
                build(member, into)
        again = {path.name: path.read_bytes() for path in _archives(Path(scratch))}
    return [
        f"{path.name}: a second build differs"
        for path in _archives(dist)
        if path.name in again and again[path.name] != path.read_bytes()
    ]


def archive_faults(member: Member, dist: Path) -> list[str]:
    """What an index or a user would miss in the two archives of a member."""
    found = [path for path in _archives(dist) if path.name.startswith(f"{stem(member)}")]
    kinds = sorted("wheel" if path.suffix == ".whl" else "source" for path in found)
    if kinds != ["source", "wheel"]:
        return [f"{member.name}: a wheel and a source distribution expected, got {kinds}"]
    return [fault for path in found for fault in _faults(path)]


def stem(member: Member) -> str:
    """What the file names of a member's archives begin with."""
    return f"{member.name.replace('-', '_')}-{member.version}"


def build(member: Member, into: Path) -> None:
    """The source distribution of a member, and the wheel from that."""
    command = (*UV, "build", "--quiet", "--out-dir", str(into), str(member.directory))
    subprocess.run(command, check=True)


def _archives(folder: Path) -> list[Path]:
    return sorted([*folder.glob("*.whl"), *folder.glob("*.tar.gz")])


def _faults(path: Path) -> Iterator[str]:
    """The checks of one archive; twine renders the description as the index does."""
    files = read_archive(path)
    if not any(name.endswith("LICENSE") and text for name, text in files.items()):
        yield f"{path.name}: no licence file"
    metadata = next(t for n, t in files.items() if n.endswith(("/METADATA", "/PKG-INFO")))
    headers = HeaderParser().parsestr(metadata)
    for name in REQUIRED_FIELDS:
        if name not in headers:
            yield f"{path.name}: no {name} in the metadata"
    command = (sys.executable, "-m", "twine", "check", "--strict", str(path))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        yield f"{path.name}: twine check: {done.stdout.strip()}"


def read_archive(path: Path) -> dict[str, str]:
    """Text files of a wheel or a source distribution by name."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return {n: wheel.read(n).decode(errors="replace") for n in wheel.namelist()}
    with tarfile.open(path) as source:
        opened = {entry.name: source.extractfile(entry) for entry in source if entry.isfile()}
        return {n: file.read().decode(errors="replace") for n, file in opened.items() if file}
