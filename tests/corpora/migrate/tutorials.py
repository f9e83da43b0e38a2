"""What nki-migrate makes of the 0.1 kernels of aws-neuron/nki-samples, measured by running it.

The files that import `neuronxcc` are laid out in a folder, migrated to the newest version, and
every kernel with a case in `cases.toml` is verified: old kernel, new kernel and reference on the
same data.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.corpora.beta1.catalog import HERE as BETA1
from tests.corpora.beta1.sources import Snapshot, absent_packages

from nki_migrate.settings.request import VERSIONS

REPO = "aws-neuron/nki-samples"
COMMIT = "6905a68"
CASES = Path(__file__).parent / "cases.toml"
VERIFIED = "verified"
HOST_CODE = "test/"  # scripts that launch kernels of other files


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of one kernel; `says` is what is missing, or how far apart results are."""

    path: str
    kernel: str
    word: str
    says: str


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of a commit in a folder, and the environment in which they run."""

    folder: Path
    env: Mapping[str, str]

    def run(self, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """`python ARGUMENTS` with stand-ins for the packages that host code imports."""
        command = (sys.executable, *arguments)
        return subprocess.run(
            command, cwd=cwd or self.folder, env=self.env, capture_output=True, text=True
        )


def lay_out(corpus: Path, folder: Path) -> Layout:
    """Every Python file of the commit that mentions `neuronxcc`, at its path."""
    snapshot = Snapshot(corpus / REPO, COMMIT)
    absent: set[str] = set()
    for path in sorted(snapshot.paths):
        source = snapshot.read(path) if path.endswith(".py") else b""
        if b"neuronxcc" in source:
            lay_down(folder / "old" / path, source)
            absent |= absent_packages(snapshot, path)
    site = folder / "site"
    site.mkdir()
    packages = sorted(absent - {"neuronxcc.nki.kernels"})  # a run that imports these is to fail
    (site / "sitecustomize.py").write_text(
        f"import stand_in\nstand_in.install({packages}, {str(folder)!r})\n"
    )
    paths = (site, BETA1 / "child", *filter(None, [os.environ.get("PYTHONPATH")]))
    return Layout(folder, {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))})


def lay_down(target: Path, source: bytes) -> None:
    """The file, and beside it the parts of it that can be imported where all of it cannot.

    `nki.compiler` at the top of a module stops every kernel of it after the migration, also kernels
    that have nothing to do with it; a launch at the top runs whenever the module is imported.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(source)
    parts = {BEFORE: _direct_allocation(source), BEFORE_LAUNCH: _launch(source)}
    for part, line in parts.items():
        before = source.splitlines(keepends=True)[: (line or 1) - 1]
        if b"@nki" in b"".join(before):
            target.with_name(f"{target.stem}{part}.py").write_bytes(b"".join(before))


BEFORE = "__before_allocation"
BEFORE_LAUNCH = "__before_launch"


def _direct_allocation(source: bytes) -> int | None:
    """The line of the first assignment at module level that names `nki.compiler`."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and "nki.compiler" in ast.unparse(node.value):
            return node.lineno
    return None


def _launch(source: bytes) -> int | None:
    """The line of the first `kernel[grid](…)` in a statement at module level."""
    body = ast.parse(source).body
    names = {n.name for n in body if isinstance(n, ast.FunctionDef) and n.decorator_list}
    for statement in body:
        if not isinstance(statement, ast.Assign | ast.Expr):
            continue
        for node in ast.walk(statement):
            launched = node.func if isinstance(node, ast.Call) else None
            kernel = launched.value if isinstance(launched, ast.Subscript) else None
            if isinstance(kernel, ast.Name) and kernel.id in names:
                return statement.lineno
    return None


def migrate(layout: Layout, *options: str, paths: Sequence[str] = ("",)) -> dict[str, Any]:
    """`nki-migrate fix old/PATH… --to 0.7 --verify --output-dir new`: its JSON report."""
    sources = [str(Path("old") / path) for path in paths]
    what = ("fix", *sources, "--to", VERSIONS[-1], "--output-dir", "new", "--output-format", "json")
    done = layout.run("-m", "nki_migrate", *what, "--verify", "--cases", str(CASES), *options)
    if not done.stdout:
        raise RuntimeError(f"nki-migrate said nothing: {done.stderr}")
    return json.loads(done.stdout)


def tried(report: Mapping[str, Any]) -> list[Tried]:
    """One line per kernel, one per file of host code that needs a hand."""
    verdicts = {(_inner(row["file"]), row["kernel"]): row for row in report["verify"]}
    return [line for file in report["files"] for line in _of_file(file, verdicts)]


def together(safe: Sequence[Tried], unsafe: Sequence[Tried]) -> list[Tried]:
    """The lines of a run; where a run with --unsafe-fixes verifies more, that is said."""
    also = {(line.path, line.kernel) for line in unsafe if line.word == VERIFIED}
    return [
        replace(line, word="verified with --unsafe-fixes")
        if line.word != VERIFIED and (line.path, line.kernel) in also
        else line
        for line in safe
    ]


def _of_file(
    file: Mapping[str, Any], verdicts: Mapping[tuple[str, str], Mapping[str, Any]]
) -> Iterator[Tried]:
    path = _inner(file["path"])
    if path.startswith(HOST_CODE):
        left = _left(file["findings"])
        yield Tried(path, "", "converted" if not left else "manual", left)
        return
    for kernel in file["kernels"]:
        name = kernel["name"]
        left = _left([f for f in file["findings"] if f["kernel"] == name])
        verdict = verdicts.get((path, name))
        yield Tried(path, name, *_outcome(kernel["complete"], left, verdict))


def _outcome(complete: bool, left: str, verdict: Mapping[str, Any] | None) -> tuple[str, str]:
    if verdict is None:
        return ("converted" if complete else "manual"), left or "no case of its own"
    if verdict["equal"]:
        return VERIFIED, left
    if any(str(p).startswith(OLD_FAILED) for p in verdict["problems"]):
        return "not under beta1", _without_old(left, verdict)
    problem = _one_line(verdict["problems"][0])
    word = ("fails" if "failed: " in problem else "differs") if complete else "manual"
    return word, f"{left}; {problem}" if left else problem


OLD_FAILED = "old kernel failed: "


def _without_old(left: str, verdict: Mapping[str, Any]) -> str:
    """What the reference says of a new kernel whose old one does not run here, then the rest."""
    against = verdict["against_reference"]
    equal = against is not None and not against["why"]
    said = "equals the reference" if equal else "does not equal the reference"
    problems = sorted(verdict["problems"], key=lambda p: str(p).startswith(OLD_FAILED))
    return "; ".join(text for text in (said, left, *map(_one_line, problems)) if text)


def _one_line(problem: object) -> str:
    """A problem without its file, which has a column of its own."""
    text = " ".join(str(problem).split())
    return re.sub(r"^\S+ \(migrated\):(\d+):\d+: ", r"line \1: ", text)


def _left(findings: Sequence[Mapping[str, Any]]) -> str:
    """The rules that left something to do, how often, and what the first one says."""
    open_ones = [f for f in findings if not f["applied"] and f["safety"] != "info"]
    count = Counter(f["rule"] for f in open_ones)
    first = {f["rule"]: f["message"] for f in reversed(open_ones)}
    return "; ".join(f"{rule} ×{n}: {first[rule]}" for rule, n in sorted(count.items()))


def _inner(path: str) -> str:
    return Path(path).as_posix().removeprefix("old/")


def markdown(lines: Sequence[Tried]) -> str:
    """Counts and a table."""
    kernels = [line for line in lines if line.kernel]
    count = Counter(line.word for line in kernels)
    said = ", ".join(f"{n} {word}" for word, n in count.most_common())
    rows = [f"| {line.path} | {line.kernel} | {line.word} | {_cell(line.says)} |" for line in lines]
    head = ["| file | kernel | outcome | what is left |", "|---|---|---|---|"]
    return "\n".join([f"{len(kernels)} kernels: {said}.", "", *head, *rows]) + "\n"


def _cell(text: str) -> str:
    short = text if len(text) <= 220 else text[:219] + "…"
    return short.replace("|", "\\|").replace("<", "&lt;")


def try_all(corpus: Path) -> list[Tried]:
    """Lay out, migrate and verify, with safe edits and with all."""
    with tempfile.TemporaryDirectory(prefix="nki-migrate-corpus-") as name:
        layout = lay_out(corpus, Path(name))
        return together(tried(migrate(layout)), tried(migrate(layout, "--unsafe-fixes")))
