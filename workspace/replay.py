"""`python workspace/replay.py BASE`: a refactor changes nothing that we generate.

BASE is checked out beside this tree with its own environment; both are asked for the same things
and the answers are compared as text. Migrations start from *this* tree's examples on both sides,
so only the tool can make a difference. Golden files are compared as committed: each tree's own
tests hold them to what that tree generates.
"""

from __future__ import annotations

import difflib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfile

from members import ROOT

MIGRATED_EXAMPLES = ("beta1", "beta1_todo")
GOLDEN = "golden"  # every folder of this name under packages, tools and tests
GENERATED = "examples/generated"  # committed too, and held by stage 8
SETTLED = (0, 1)  # nki-migrate: done, or done with findings left for a person


@dataclass(frozen=True, slots=True)
class Tree:
    """A checkout and where its answers go."""

    root: Path
    answers: Path

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        """Run `command` in this checkout's own environment."""
        outside = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH")}
        uv = ("uv", "run", "--quiet", "--frozen", "--no-dev", *map(str, command))
        run = subprocess.run
        return run(uv, cwd=self.root, env=outside, capture_output=True, text=True, check=False)


def migrate(tree: Tree, example: str) -> None:
    """The migration of one folder of examples, and how nki-migrate exited."""
    into = tree.answers / "migrations" / example
    into.mkdir(parents=True)
    source = ROOT / "examples" / example
    done = tree.run("nki-migrate", "fix", source, "--to", "0.6", "--output-dir", into)
    if done.returncode not in SETTLED:
        raise SystemExit(f"{tree.root}: nki-migrate fix {source} failed\n{done.stderr}")
    (into / "exit-code").write_text(f"{done.returncode}\n", encoding="utf-8")


def collect_golden(tree: Tree) -> None:
    """Copy every committed golden file and generated kernel."""
    listed = ("git", "ls-files", "-z", "packages", "tools", "tests", GENERATED)
    done = subprocess.run(listed, cwd=tree.root, capture_output=True, text=True, check=True)
    names = done.stdout.split("\0")
    for name in (n for n in names if GOLDEN in Path(n).parts or n.startswith(f"{GENERATED}/")):
        copy = tree.answers / "golden-files" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copyfile(tree.root / name, copy)


def generate(tree: Tree) -> None:
    """Everything that a refactor must not change."""
    for example in MIGRATED_EXAMPLES:
        migrate(tree, example)
    collect_golden(tree)


def texts(folder: Path) -> dict[str, list[str]]:
    """The lines of every file under `folder` by relative path."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8").splitlines(keepends=True)
        for path in files
    }


def differences(base: Path, here: Path) -> Iterator[str]:
    """Unified diff of every file that is not the same, present or absent, on both sides."""
    before, after = texts(base), texts(here)
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name, []), after.get(name, [])
        yield from difflib.unified_diff(old, new, f"base/{name}", f"here/{name}")
        if (name in before) != (name in after) and not (old or new):
            yield f"{name}: an empty file on one side only\n"


@contextmanager
def checkout(commit: str, folder: Path) -> Iterator[Path]:
    """`commit` as a git worktree in `folder`, gone afterwards."""
    git = ("git", "-C", str(ROOT), "worktree")
    subprocess.run((*git, "add", "--quiet", "--detach", str(folder), commit), check=True)
    try:
        yield folder
    finally:
        subprocess.run((*git, "remove", "--force", str(folder)), check=True)


def main(commit: str) -> int:
    """Compare `commit` with this tree; prints the differences, 1 when there is one."""
    with tempfile.TemporaryDirectory() as name, checkout(commit, Path(name) / "tree") as tree:
        base, here = Tree(tree, Path(name) / "base"), Tree(ROOT, Path(name) / "here")
        for one in (base, here):
            generate(one)
        compared = len(texts(here.answers))
        found = list(differences(base.answers, here.answers))
    sys.stdout.writelines(found)
    print(f"{compared} generated files compared with {commit}: {'DIFFERENT' if found else 'same'}")
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    raise SystemExit(main(sys.argv[1]))
