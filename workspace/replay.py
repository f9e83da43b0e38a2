"""`python workspace/replay.py BASE`: a refactor changes nothing that we generate.

BASE is checked out beside this tree with its own environment. Both run the same commands
(migrations, reports, generated kernels, token plans, latencies, searches with their certificates)
on *this* tree's examples, so only the packages can make a difference; the outputs are compared as
text. Golden files are compared as committed: each tree's own tests compare them with what that
tree generates. Words that were renamed are read from renamed.toml.
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfile

from members import ROOT

EXAMPLES = ROOT / "examples"
MEASURED = re.compile(r'("(?:cpu_s|peak_mb|seconds)": )[\d.]+')
MIGRATED_EXAMPLES = ("beta1", "beta1_todo")
GOLDEN = "golden"  # every folder of this name under packages, tools and tests
GENERATED = "examples/generated"  # committed too, and verified by stage 8
EXPECTED_CODES = (0, 1)  # done, or done with findings
RENAMED = Path(__file__).with_name("renamed.toml")
MATRICES = ("--spec", "bf16[256,256]", "--spec", "bf16[256,1024]")

# Output file → the command that prints it, with FILE standing for a path below examples/.
COMMANDS: dict[str, tuple[str, ...]] = {
    **{
        f"reports/{example}.{form}": (
            "nki-migrate", "check", f"FILE:{example}", "--to", "0.7", "--output-format", form,
        )
        for example in MIGRATED_EXAMPLES
        for form in ("text", "json", "sarif", "github", "junit")
    },
    "plans/gemm.txt": (
        "tokenplan", "explain", "FILE:tokenplan/gemm.py:gemm_kernel", "--spec", "f32[256,512]",
        "--spec", "f32[256,64]", "--schedule", "--verbose",
    ),
    "plans/stream.json": (
        "tokenplan", "explain", "FILE:tokenplan/stream.py:stream_kernel", "--spec", "f32[512,256]",
        "--schedule", "--output-format", "json",
    ),
    "plans/recurrence.dot": (
        "tokenplan", "explain", "FILE:tokenplan/recurrence.py:recurrence_kernel", "--spec",
        "f32[768,256]", "--output-format", "dot",
    ),
    "generated/mlp.json": (
        "nkigen", "FILE:generated/mlp.py:mlp", "--spec", "bf16[256,256]", "--spec",
        "bf16[256,512]", "--spec", "bf16[256,512]", "--spec", "bf16[512,256]", "--explain",
        "--output-format", "json",
    ),
    "latencies/examples.txt": ("python", str(ROOT / "workspace" / "latencies.py"), "FILE:"),
    "searches/enumerate.json": (
        "nkigym", "enumerate", "--tiles", "2,2,2", "--check", "--output-format", "json",
    ),
    "searches/matmul.json": (
        "nkigym", "tune", "FILE:gym/matmul.py:matmul", *MATRICES, "--budget", "40", "--seed", "0",
        "--output-format", "json",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tree:
    """A checkout and where its answers go."""

    root: Path
    answers: Path

    def write(self, name: str, text: str) -> None:
        """Keep the output called `name`."""
        path = self.answers / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        """Run `command` with this checkout's packages, at the root of this tree."""
        outside = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH")}
        options = ("--quiet", "--frozen", "--no-dev", "--project", str(self.root))
        uv = ("uv", "run", *options, *map(str, command))
        run = subprocess.run
        return run(uv, cwd=ROOT, env=outside, capture_output=True, text=True, check=False)


def migrate(tree: Tree, example: str) -> None:
    """The migration of one folder of examples, and the exit code of nki-migrate."""
    into = tree.answers / "migrations" / example
    into.mkdir(parents=True)
    done = tree.run("nki-migrate", "fix", EXAMPLES / example, "--to", "0.7", "--output-dir", into)
    expect_success(tree, done)
    tree.write(f"migrations/{example}/exit-code", f"{done.returncode}\n")


def expect_success(tree: Tree, done: subprocess.CompletedProcess[str]) -> None:
    """Raises SystemExit for a command that failed."""
    if done.returncode not in EXPECTED_CODES:
        raise SystemExit(f"{tree.root}: {' '.join(done.args)} failed\n{done.stderr}")


def print_output(tree: Tree, name: str, command: tuple[str, ...]) -> None:
    """Keep what the command prints, with its exit code."""
    done = tree.run(*(part.replace("FILE:", f"{EXAMPLES}/") for part in command))
    expect_success(tree, done)
    shown = MEASURED.sub(r"\1…", done.stdout)
    tree.write(name, f"{shown}exit code {done.returncode}\n")


def unmoved(name: str) -> str:
    """A golden file's name without the folder of its tests, which may move."""
    parts = Path(name).parts
    inner = parts[parts.index(GOLDEN) :] if GOLDEN in parts else parts[2:]
    return str(Path(*parts[:2], *inner))


def collect_golden(tree: Tree) -> None:
    """Copy every committed golden file and generated kernel."""
    listed = ("git", "ls-files", "-z", "packages", "tools", "tests", GENERATED)
    done = subprocess.run(listed, cwd=tree.root, capture_output=True, text=True, check=True)
    names = done.stdout.split("\0")
    for name in (n for n in names if GOLDEN in Path(n).parts or n.startswith(f"{GENERATED}/")):
        copy = tree.answers / "golden-files" / unmoved(name)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copyfile(tree.root / name, copy)


def generate(tree: Tree) -> None:
    """Everything that a refactor must not change."""
    for example in MIGRATED_EXAMPLES:
        migrate(tree, example)
    for name, command in COMMANDS.items():
        print_output(tree, name, command)
    collect_golden(tree)


def renamed(text: str) -> str:
    """The text of BASE with the words of this tree."""
    for entry in tomllib.loads(RENAMED.read_text(encoding="utf-8"))["renamed"]:
        text = re.sub(rf"\b{entry['was']}\b", entry["now"], text)
    return text


def without_breaks(text: str) -> str:
    """The text without white space and without the commas that end a broken line."""
    return re.sub(r",(?=[)\]])", "", "".join(text.split()))


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
        was = renamed("".join(old))
        if was != "".join(old) and without_breaks(was) == without_breaks("".join(new)):
            continue
        old = was.splitlines(keepends=True)
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
