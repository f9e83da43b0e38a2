"""`python workspace/audit.py`: licences and known vulnerabilities of what our packages install.

Licences are read from the metadata of what is installed here, extras included. Vulnerabilities are
looked up with pip-audit for the locked versions; where its service cannot be reached, a line says
so. Exit 1 on a licence that is neither permissive nor in EXEMPT, and on a vulnerability.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from fnmatch import fnmatch
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from archives import UV
from members import ROOT, members
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from wheels import export_lock

PERMISSIVE = re.compile(r"\b(MIT|BSD|0BSD|Apache|PSF|Python Software Foundation|ISC|Zlib)\b", re.I)
EXEMPT = {
    "nvidia-*": "the compiler of Tile IR: only with an extra of tokenplan, its own terms apply",
    "certifi": "MPL-2.0: certificates, unchanged; only with an extra of nkigym",
}
"""Distribution → why it may be needed although its licence is not permissive."""


def needed() -> dict[str, Distribution]:
    """What our packages require here, directly or not, with every extra; without our packages."""
    found: dict[str, Distribution] = {}
    pending = [member.name for member in members()]
    ours = {*pending}
    while pending:
        name = canonicalize_name(pending.pop())
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            continue  # of another platform, or an extra that is not installed
        pending += _required(found[name], with_extras=name in ours)
    return {name: dist for name, dist in sorted(found.items()) if name not in ours}


def _required(dist: Distribution, with_extras: bool) -> Iterator[str]:
    extras = [*dist.metadata.get_all("Provides-Extra", [])] if with_extras else []
    for line in dist.requires or ():
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield requirement.name


def licence(dist: Distribution) -> str:
    """The licence that the metadata names, the newest field first; "" for none."""
    fields = dist.metadata.get_all
    named = [c.split(" :: ")[-1] for c in fields("Classifier", []) if c.startswith("License ::")]
    texts = (*fields("License-Expression", []), " and ".join(named), *fields("License", []))
    return next((text.splitlines()[0] for text in texts if text), "")


def licence_faults(found: dict[str, str]) -> Iterator[str]:
    """The distributions, by name, whose licence is not permissive and not exempt."""
    for name, text in found.items():
        is_exempt = any(fnmatch(name, pattern) for pattern in EXEMPT)
        if not is_exempt and not PERMISSIVE.search(text):
            yield f"{name}: {text or 'no licence in its metadata'}"


def vulnerabilities(report: str) -> Iterator[str]:
    """The known ones of pip-audit's JSON report."""
    for entry in json.loads(report)["dependencies"]:
        for known in entry.get("vulns", ()):
            fixed = ", ".join(known["fix_versions"]) or "no version"
            yield f"{entry['name']} {entry['version']}: {known['id']}, mended in {fixed}"


def audit() -> list[str] | None:
    """The vulnerabilities of the locked versions; None where nothing could be asked."""
    with tempfile.TemporaryDirectory() as scratch:
        locked = export_lock(Path(scratch) / "locked.txt")
        options = ("--no-deps", "--disable-pip", "--format", "json", "--progress-spinner", "off")
        command = (*UV, "tool", "run", "--quiet", "pip-audit", "--requirement", str(locked))
        done = subprocess.run((*command, *options), cwd=ROOT, capture_output=True, text=True)
    if not done.stdout.startswith("{"):
        print(f"pip-audit: {(done.stderr.strip().splitlines() or ['no answer'])[-1]}")
        return None
    return [*vulnerabilities(done.stdout)]


def main() -> int:
    """Print the licences and the vulnerabilities."""
    found = {name: licence(dist) for name, dist in needed().items()}
    for name, text in found.items():
        print(f"{name:28} {text}")
    faults = [*licence_faults(found)]
    known = audit()
    if known is None:
        print("vulnerabilities: not looked up, the service cannot be reached from here")
    faults += known or []
    print("\n".join(faults) or "no fault")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
