"""Migrates the files of the corpus one by one, and runs what came of their kernels."""

from __future__ import annotations

import ast
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from tests.corpora.beta1.catalog import CorpusFile, Kernel
from tests.corpora.beta1.sources import SourceError
from tests.corpora.migration.fixing import Fixed, fix
from tests.corpora.migration.form import Form, form_of
from tests.corpora.migration.layout import AT_IMPORT, Laid, lay_out, readable
from tests.corpora.migration.reach import (
    Reached,
    is_open,
    module_level,
    open_findings,
    reached,
    todos,
)
from tests.corpora.migration.runs import Old, Runner, difference, rejections
from tests.corpora.migration.unchanged import touched_unasked

Word = Literal["verified", "todo", "fails", "WRONG", "not under beta1", "no case", "excluded"]


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of a kernel: `rules` are of the open findings, `reason` what went wrong."""

    kernel: str
    word: Word
    reason: str = ""
    left: tuple[tuple[str, str], ...] = ()

    @property
    def rules(self) -> Counter[str]:
        """How often each rule left something."""
        return Counter(rule for rule, _ in self.left)


@dataclass(frozen=True, slots=True)
class FileTried:
    """What became of a file; each text is empty when all is well."""

    file: CorpusFile
    crash: str = ""
    unparsable: str = ""
    unstable: str = ""
    astray: str = ""
    form: Form | None = None
    kernels: tuple[Tried, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Migration:
    """How files are tried: from which clones, with observed facts or from the source alone.

    `keep` is a folder for the old and the new texts.
    """

    corpus: Path
    runner: Runner
    with_facts: bool = True
    keep: Path | None = None

    def of(self, file: CorpusFile, kernels: Sequence[Kernel]) -> FileTried:
        """What becomes of a file and of its kernels."""
        with tempfile.TemporaryDirectory(prefix="nki-migration-") as name:
            folder = Path(name)
            if self.keep is not None:
                folder = self.keep / _slug(file)
                shutil.rmtree(folder, ignore_errors=True)
            return _try_file(self, file, kernels, folder)


def try_all(
    files: Sequence[tuple[CorpusFile, Sequence[Kernel]]],
    migration: Migration,
    jobs: int = 2,
    tell: Callable[[FileTried], None] = lambda tried: None,
) -> list[FileTried]:
    """One result per file, in their order; `tell` hears each as soon as it is there."""

    def one(item: tuple[CorpusFile, Sequence[Kernel]]) -> FileTried:
        tried = migration.of(*item)
        tell(tried)
        return tried

    with ThreadPoolExecutor(max(1, jobs)) as pool:
        try:
            return list(pool.map(one, files))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _slug(file: CorpusFile) -> str:
    return f"{file.repo}/{file.path}".replace("/", "__").removesuffix(".py")


def _try_file(
    migration: Migration, file: CorpusFile, kernels: Sequence[Kernel], folder: Path
) -> FileTried:
    """Migrate a file with what it imports, look at the text, run its kernels."""
    corpus, runner = migration.corpus, migration.runner
    cases = [case for kernel in kernels for case in kernel.cases]
    try:
        old = lay_out(corpus, file, cases, folder / "old")
    except SourceError as error:
        return FileTried(file, crash=str(error))
    before = {kernel.name: [runner.old(old, case) for case in kernel.cases] for kernel in kernels}
    facts = _facts([run for runs in before.values() for run in runs], folder / "facts.json")
    new = old.copied(folder / "new")
    sources = [path for path in old.sources if b"nki" in (old.top / path).read_bytes()]
    fixed = fix(new.top, sources, facts if migration.with_facts else None)
    tried = _looked_at(file, old, new, sources, fixed)
    if tried.crash or tried.unparsable:
        return tried
    tree = _Trees(old, new, fixed)
    results = tuple(_judge(kernel, before[kernel.name], new, tree, runner) for kernel in kernels)
    return replace(tried, kernels=results)


def _facts(runs: Sequence[Old], target: Path) -> Path | None:
    """The facts of all runs in one file."""
    documents = [json.loads(run.facts.read_text()) for run in runs if run.facts is not None]
    if not documents:
        return None
    merged = documents[0] | {"kernels": [k for d in documents for k in d["kernels"]]}
    target.write_text(json.dumps(merged), encoding="utf-8")
    return target


def _looked_at(
    file: CorpusFile, old: Laid, new: Laid, sources: Sequence[Path], fixed: Fixed
) -> FileTried:
    main = new.main
    if crash := fixed.crash_of(main):
        return FileTried(file, crash=crash)
    before, after = (old.top / main).read_bytes(), (new.top / main).read_bytes()
    try:
        compile(after, str(main), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        return FileTried(file, unparsable=str(error))
    again = new.copied(new.top.parent / "again")
    fix(again.top, sources)
    second = (again.top / main).read_bytes()
    unstable = "" if second == after else f"line {_first_difference(after, second)}"
    lines = touched_unasked(before, after, fixed.findings(main))
    astray = f"lines {', '.join(map(str, lines[:5]))}" if lines else ""
    form = form_of(before.decode("utf-8", "replace"), after.decode("utf-8", "replace"))
    return FileTried(file, "", "", unstable, astray, form)


def _first_difference(one: bytes, other: bytes) -> int:
    pairs = zip(one.splitlines(), other.splitlines(), strict=False)
    return next((n for n, (a, b) in enumerate(pairs, 1) if a != b), 0)


class _Trees:
    """Old and new texts of a file and of what it imports, and what was said about them."""

    def __init__(self, old: Laid, new: Laid, fixed: Fixed) -> None:
        self.main = old.main
        self.old = {p: ast.parse((old.top / p).read_bytes()) for p in old.sources}
        self.new = {p: ast.parse((new.top / p).read_bytes()) for p in new.sources}
        self.lines = {p: (new.top / p).read_text("utf-8", "replace").splitlines() for p in self.new}
        self.findings = {p: fixed.findings(p) for p in self.old}

    def left(self, kernel: str) -> list[tuple[str, str]]:
        """Rule and message of what is left to a human in what the kernel reaches."""
        found = open_findings(self.findings, reached(self.old, self.main, kernel))
        left = [(f["rule"], f["message"]) for f in found]
        known = {rule for rule, _ in left}
        for place in reached(self.new, self.main, kernel):
            rules = [r for r in todos(self.lines[place.path], place) if r not in known]
            left += [(rule, "a TODO without a finding") for rule in rules]
        return left

    def left_at_import(self) -> list[tuple[str, str]]:
        """Rule and message of what is left in what runs when the file is imported."""
        return [
            (finding["rule"], finding["message"])
            for path, found in self.findings.items()
            for finding in found
            if is_open(finding) and finding["line"] in module_level(self.old[path])
        ]

    def gridded(self) -> frozenset[str]:
        """The functions of the new file that ask which program of a grid they are."""
        names: set[str] = set()
        for node in ast.walk(self.new[self.main]):
            if isinstance(node, ast.FunctionDef):
                places: Sequence[Reached] = reached(self.new, self.main, node.name)
                if any(_asks("\n".join(self.lines[p.path][p.first - 1 : p.last])) for p in places):
                    names.add(node.name)
        return frozenset(names)


def _asks(text: str) -> bool:
    return any(f"{name}(" in text for name in ("program_id", "num_programs", "program_ndim"))


def _judge(
    kernel: Kernel, before: Sequence[Old], new: Laid, trees: _Trees, runner: Runner
) -> Tried:
    if kernel.exclusion:
        return Tried(kernel.name, "excluded", kernel.exclusion.reason)
    if not kernel.cases:
        return Tried(kernel.name, "no case")
    left = tuple(trees.left(kernel.name))
    if problem := next((run.problem for run in before if run.problem), ""):
        return Tried(kernel.name, "not under beta1", problem, left)
    if left:
        return Tried(kernel.name, "todo", "", left)
    word, reason = _run_new(kernel, before, new, trees.gridded(), runner)
    at_import = tuple(trees.left_at_import())
    if word == "fails" and at_import and AT_IMPORT in reason:
        return Tried(kernel.name, "todo", reason, at_import)
    return Tried(kernel.name, word, reason)


def _run_new(
    kernel: Kernel,
    before: Sequence[Old],
    new: Laid,
    gridded: frozenset[str],
    runner: Runner,
) -> tuple[Word, str]:
    """WRONG beats every failure: all cases run before a word is said."""
    failed = ""
    for case, old in zip(kernel.cases, before, strict=True):
        outcome = runner.new(new, case, gridded)
        if outcome.error:
            failed = failed or outcome.error
            continue
        wrong = difference(case, outcome, old.expected, "reference")
        wrong = wrong or difference(case, outcome, old.outcome, "old kernel")
        if wrong:
            return "WRONG", wrong
        failed = failed or readable(" ".join(outcome.findings[:1]), new)
    blocked = rejections(new, kernel.name)
    failed = failed or (f"subset: {blocked[0]}" if blocked else "")
    return ("fails", failed) if failed else ("verified", "")


def counts(tried: Sequence[FileTried]) -> Mapping[str, Any]:
    """The numbers of a whole run."""
    words = Counter(kernel.word for file in tried for kernel in file.kernels)
    ran = sum(words[w] for w in ("verified", "todo", "fails", "WRONG"))
    return {
        "files": len(tried),
        "crash": sum(bool(file.crash) for file in tried),
        "unparsable": sum(bool(file.unparsable) for file in tried),
        "second run changes": sum(bool(file.unstable) for file in tried),
        "untouched lines changed": sum(bool(file.astray) for file in tried),
        "entry kernels": sum(words.values()),
        "run under beta1": ran,
        **{word: words[word] for word in ("verified", "todo", "fails", "WRONG")},
        "share": words["verified"] / ran if ran else 0.0,
    }
