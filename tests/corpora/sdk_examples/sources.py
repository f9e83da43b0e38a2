"""The example files, as they are in the tag, in a folder of their own."""

from __future__ import annotations

import io
import re
import subprocess
import tarfile
from pathlib import Path

TAG = "v2.32.0"
FOLDER = "nki/examples"


class SourcesError(Exception):
    """The checkout does not have what is asked for."""


def unpack(checkout: Path, folder: Path) -> Path:
    """Put the examples of the tag into `folder`; the checkout is only read.

    Raises SourcesError where it is not a clone of the repository, or has no such tag.
    """
    command = ("git", "-C", str(checkout), "archive", "--format=tar", TAG, FOLDER)
    done = subprocess.run(command, capture_output=True)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise SourcesError(
            f"{checkout} has no {FOLDER} of the tag {TAG}: {said}; "
            f"git fetch origin tag {TAG} brings it"
        )
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / FOLDER


def kernels_in(examples: Path) -> set[str]:
    """ "file:kernel" for every decorated function, also in files that are not quite Python."""
    decorated = re.compile(r"^@(?:nki\.jit|nki_jit)\b.*\ndef (\w+)", re.MULTILINE)
    return {
        f"{file.relative_to(examples).as_posix()}:{kernel}"
        for file in sorted(examples.rglob("*.py"))
        for kernel in decorated.findall(file.read_text(encoding="utf-8"))
    }
