"""Runs the kernels of the corpus under beta1, each in a child process, against our references."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.corpora.beta1.catalog import HERE, CorpusCase, Kernel
from tests.corpora.beta1.sources import Extracted, Snapshot, SourceError, extract

from nki_migrate.verify.child import parameters
from nki_migrate.verify.compare import Difference, Tolerance, compare
from nki_migrate.verify.job import Backend, Job, Outcome
from nki_migrate.verify.process import Children, Limits

Word = Literal["match", "differs", "fails", "excluded", "no case"]
SECONDS, MEBIBYTES = 120.0, 12288


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a kernel; `reason` is empty for a match."""

    kernel: Kernel
    word: Word
    reason: str = ""
    max_error: float = 0.0


def run_corpus(
    kernels: Sequence[Kernel],
    corpus: Path,
    jobs: int = 2,
    tell: Callable[[Verdict], None] = lambda verdict: None,
) -> list[Verdict]:
    """A verdict per kernel, in their order; `tell` hears each as soon as it is there."""
    children = Children(Limits(SECONDS, MEBIBYTES))

    def judge(kernel: Kernel) -> Verdict:
        verdict = judge_kernel(kernel, corpus, children)
        tell(verdict)
        return verdict

    with ThreadPoolExecutor(max(1, jobs)) as pool:
        try:
            return list(pool.map(judge, kernels))
        except BaseException:
            children.close()
            pool.shutdown(cancel_futures=True)
            raise


def judge_kernel(kernel: Kernel, corpus: Path, children: Children) -> Verdict:
    """Run every case of a kernel; the first that is not a match decides."""
    if kernel.exclusion:
        return Verdict(kernel, "excluded", f"{kernel.exclusion.reason}: {kernel.exclusion.why}")
    if not kernel.cases:
        return Verdict(kernel, "no case")
    clone = corpus / kernel.file.repo
    with tempfile.TemporaryDirectory(prefix="nki-corpus-") as name:
        try:
            extracted = extract(Snapshot(clone, kernel.file.commit), kernel.file.path, Path(name))
        except SourceError as error:
            return Verdict(kernel, "fails", str(error))
        verdicts = [_judge_case(kernel, case, extracted, children) for case in kernel.cases]
    wrong = next((verdict for verdict in verdicts if verdict.word != "match"), None)
    return wrong or max(verdicts, key=lambda verdict: verdict.max_error)


def _judge_case(
    kernel: Kernel, chosen: CorpusCase, extracted: Extracted, children: Children
) -> Verdict:
    case = chosen.case
    children = Children(Limits(chosen.seconds, MEBIBYTES)) if chosen.seconds else children
    entry = write_entry(kernel, chosen, extracted)
    search = (entry.parent, HERE / "child", *extracted.search_path)
    backend = Backend("beta1", "0.1", chosen.target)
    actual = children.run(Job(entry, ENTRY_FUNCTION, search, case.seed, case.variants(), backend))
    if actual.error:
        return Verdict(kernel, "fails", _readable(actual.error, extracted, kernel))
    assert case.reference is not None  # the catalog takes no case without one
    file, function = case.reference
    expected = children.run(Job(file, function, (file.parent,), case.seed, case.variants()))
    if expected.error:
        return Verdict(kernel, "fails", f"our reference failed: {expected.error}")
    return _compared(kernel, chosen, actual, expected)


def _compared(kernel: Kernel, chosen: CorpusCase, actual: Outcome, expected: Outcome) -> Verdict:
    tolerance = Tolerance(chosen.case.rtol, chosen.case.atol, chosen.case.ulps)
    worst = 0.0
    for number, wanted in enumerate(expected.results):
        results = actual.results[number]
        if len(wanted) == actual.returned[number]:  # a reference that leaves `inout` out
            results = results[: len(wanted)]
        if len(results) != len(wanted) or not results:
            why = f"{len(results)} results, expected {len(wanted)}"
            return Verdict(kernel, "differs", f"variant {number}: {why}")
        for position, (got, want) in enumerate(zip(results, wanted, strict=True)):
            difference: Difference = compare(got, want, tolerance)
            if difference.why:
                why = f"variant {number}, result {position}: {difference.why}"
                return Verdict(kernel, "differs", why, difference.max_error)
            worst = max(worst, difference.max_error)
    return Verdict(kernel, "match", max_error=worst)


ENTRY_FUNCTION, ENTRY_FILE = "corpus_entry", "corpus_case.py"
_ENTRY = """\
import importlib
import sys

import stand_in

stand_in.install({absent!r}, {top!r})
_module = importlib.import_module({module!r})
{setup}

def {function}({names}):
    return {call}
"""
_SETUP = """\
sys.path.append({folder!r})
_setup = importlib.import_module({stem!r}).{function}
"""
_OPTIONS = """\
import nki_runtime

_choice = dict(backend="beta1", nki="0.1", target={target!r}, shadow=True)
_options = nki_runtime.use(**_choice, **{options!r})
"""


def write_entry(kernel: Kernel, chosen: CorpusCase, extracted: Extracted) -> Path:
    """The file that the child loads: it imports the kernel's file and calls kernel or setup."""
    case = chosen.case
    given = [arg.name for arg in case.args]
    if chosen.setup:
        file, function = chosen.setup
        setup = _SETUP.format(folder=str(file.parent), stem=file.stem, function=function)
        call = f"_setup(_module, {', '.join(f'{name}={name}' for name in given)})"
    else:
        setup = ""
        launch = f"[{', '.join(map(str, case.grid))}]" if case.grid else ""
        call = f"_module.{case.kernel}{launch}({_bound(extracted.file, case.kernel, given)})"
    if chosen.options:
        options = dict(chosen.options)
        setup = _OPTIONS.format(target=chosen.target, options=options) + setup
    text = _ENTRY.format(
        absent=list(extracted.absent),
        top=str(_top(extracted, kernel)),
        module=extracted.module,
        setup=setup,
        function=ENTRY_FUNCTION,
        names=", ".join(given),
        call=call,
    )
    folder = Path(tempfile.mkdtemp(prefix="entry-", dir=_top(extracted, kernel)))
    (folder / ENTRY_FILE).write_text(text, encoding="utf-8")
    return folder / ENTRY_FILE


def _top(extracted: Extracted, kernel: Kernel) -> Path:
    return extracted.file.parents[len(Path(kernel.file.path).parts) - 1]


def _bound(file: Path, kernel: str, given: Sequence[str]) -> str:
    """Positional as far as the case follows the signature (lists of tensors are told by place)."""
    names = parameters(file, kernel) or []
    positional = []
    for name in names:
        if name not in given:
            break
        positional.append(name)
    rest = [f"{name}={name}" for name in given if name not in positional]
    return ", ".join((*positional, *rest))


def _readable(error: str, extracted: Extracted, kernel: Kernel) -> str:
    """The message with paths of the repository, without places in the generated entry file."""
    top = re.escape(str(_top(extracted, kernel)))
    return re.sub(rf"{top}/", "", re.sub(rf"{top}/entry-\w+/{ENTRY_FILE}:\d+: ", "", error)).strip()


def summary(verdicts: Sequence[Verdict]) -> dict[str, float]:
    """How many of each verdict, and the share of matches among what is not excluded."""
    words: tuple[Word, ...] = ("match", "differs", "fails", "no case", "excluded")
    counts = {word: sum(verdict.word == word for verdict in verdicts) for word in words}
    counted = len(verdicts) - counts["excluded"]
    cases = sum(bool(verdict.kernel.cases) for verdict in verdicts)
    share = counts["match"] / counted if counted else 0.0
    return {"kernels": len(verdicts), "with a case": cases, **counts, "share": share}


def as_json(verdicts: Sequence[Verdict]) -> str:
    """One object per kernel, for machines."""
    return json.dumps(
        [
            {
                "repo": verdict.kernel.file.repo,
                "path": verdict.kernel.file.path,
                "kernel": verdict.kernel.name,
                "verdict": verdict.word,
                "reason": verdict.reason,
                "max_error": verdict.max_error,
            }
            for verdict in verdicts
        ],
        indent=1,
    )
