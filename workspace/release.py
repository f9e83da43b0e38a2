"""Release packages: changelogs from fragments, a commit and a tag each, archives, their checks.

    release.py --dry-run [PACKAGE ...]   in a clone that is thrown away; changes nothing here
    release.py PACKAGE ...               here, where the working tree must be clean

Without names a dry run releases every package. A release is first tried like a dry run. It leaves
the archives and a list of what each installs (CycloneDX) in dist/; nothing is uploaded and nothing
is pushed. Exit 1 on a fault.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from archives import UV, archive_faults, build, build_twice
from members import ROOT, Member, members
from release_trials import trial_faults


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the release in a clone; where that has no fault and is not all, release here."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--dry-run", action="store_true", help="in a clone that is thrown away")
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="all, for a dry run")
    given = parser.parse_args(arguments)
    known = {member.name: member for member in members()}
    if unknown := sorted({*given.packages} - {*known}):
        parser.error(f"no package {', '.join(unknown)}; the packages: {', '.join(sorted(known))}")
    if not given.dry_run and not given.packages:
        parser.error("name the packages to release, or --dry-run")
    if found := obstacles(ROOT, given.packages):
        parser.error("; ".join(found))
    faults = rehearse(given.packages or sorted(known))
    if not faults and not given.dry_run:
        faults = release(ROOT, given.packages, ROOT / "dist")
    print("\n".join(faults) or "no fault")
    return 1 if faults else 0


def rehearse(names: Sequence[str]) -> list[str]:
    """The faults of a release of `names` from a clone, and of the wheels that it makes."""
    with tempfile.TemporaryDirectory() as scratch:
        clone = Path(scratch) / "clone"
        _git(ROOT, "clone", "--quiet", str(ROOT), str(clone))
        for key in ("user.name", "user.email"):  # of commits that go with the clone
            _git(clone, "config", key, "rehearsal")
        dist = clone / "dist"
        faults = release(clone, names, dist)
        released = {member.name: member for member in members(clone)}
        for name in released.keys() - {*names}:
            build(released[name], dist)
        tried = [fault for fault in trial_faults(released, dist) if fault]
        print("tried: each wheel alone, at its lowest bounds, patched beside the others, with uvx")
        return [*faults, *tried]


def obstacles(root: Path, names: Sequence[str]) -> list[str]:
    """Why these packages cannot be released from `root` now."""
    found = ["the working tree is not clean"] if _git(root, "status", "--porcelain") else []
    tags = set(_git(root, "tag", "--list").split())
    taken = [tag(m) for m in members(root) if m.name in names and tag(m) in tags]
    return found + [f"the tag {name} exists: raise the version first" for name in taken]


def tag(member: Member) -> str:
    """The tag of a member's version."""
    return f"{member.name}-{member.version}"


def release(root: Path, names: Sequence[str], dist: Path) -> list[str]:
    """Commit and tag the members called `names`, build them twice into `dist`; the faults."""
    chosen = [member for member in members(root) if member.name in names]
    for member in chosen:
        write_changelog(root, member)
        title = f"{member.name}: release {member.version}"
        _git(root, "commit", "--quiet", "--allow-empty", "--all", "--message", title)
        _git(root, "tag", tag(member))
        print(f"{tag(member)}: changelog, commit, tag")
    faults = build_twice(chosen, dist)
    for member in chosen:
        write_components(root, member, dist)
        faults += archive_faults(member, dist)
        print(f"{tag(member)}: wheel, source, list of components")
    return faults


def write_changelog(root: Path, member: Member) -> None:
    """The fragments become an entry of the member's CHANGELOG.md, and are removed."""
    towncrier = (sys.executable, "-m", "towncrier", "build", "--yes")
    where = ("--config", root / "towncrier.toml", "--dir", member.directory)
    what = ("--name", member.name, "--version", member.version)
    _run((*towncrier, *where, *what), root)
    _git(root, "add", "--all", str(member.directory))


def write_components(root: Path, member: Member, dist: Path) -> None:
    """What an installation of the member holds, as CycloneDX JSON."""
    export = (*UV, "export", "--quiet", "--frozen", "--no-dev", "--format", "cyclonedx1.5")
    text = _run((*export, "--package", member.name), root)
    (dist / f"{tag(member)}.cdx.json").write_text(text, encoding="utf-8")


def _git(root: Path, *arguments: str) -> str:
    return _run(("git", *arguments), root)


def _run(command: Sequence[object], root: Path) -> str:
    words = [*map(str, command)]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
