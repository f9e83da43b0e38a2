"""A file of the corpus in a folder of its own, before and after the migration."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.corpora.beta1.catalog import HERE as BETA1
from tests.corpora.beta1.catalog import CorpusCase, CorpusFile
from tests.corpora.beta1.sources import Extracted, Snapshot, extract

from nki_migrate.settings.request import VERSIONS
from nki_migrate.verify.cases import Arg
from nki_migrate.verify.child import parameters

SETUPS = "corpus_setups"
AT_IMPORT = "while it is imported: "
ENTRY_FUNCTION, ENTRY_FILE = "corpus_entry", "corpus_case.py"
CHILD = Path(__file__).parent / "child"


@dataclass(frozen=True, slots=True)
class Laid:
    """The file at `extracted.file`, what it imports, and setups of its cases, below `top`."""

    top: Path
    extracted: Extracted

    @property
    def sources(self) -> list[Path]:
        """Every file, relative to `top`."""
        return sorted(path.relative_to(self.top) for path in self.top.rglob("*.py"))

    @property
    def main(self) -> Path:
        """The file of the corpus, relative to `top`."""
        return self.extracted.file.relative_to(self.top)

    def copied(self, top: Path) -> Laid:
        """The same files below another folder."""
        shutil.copytree(self.top, top)

        def moved(path: Path) -> Path:
            return top / path.relative_to(self.top)

        search = tuple(moved(path) for path in self.extracted.search_path)
        file = moved(self.extracted.file)
        return Laid(top, replace(self.extracted, file=file, search_path=search))


def lay_out(corpus: Path, file: CorpusFile, cases: Sequence[CorpusCase], top: Path) -> Laid:
    """The files below `top`, which must not exist. Raises SourceError."""
    top.mkdir(parents=True)
    extracted = extract(Snapshot(corpus / file.repo, file.commit), file.path, top)
    for case in cases:
        if case.setup:
            (top / SETUPS).mkdir(exist_ok=True)
            shutil.copy(case.setup[0], top / SETUPS)
    return Laid(top, extracted)


@dataclass(frozen=True, slots=True)
class Entry:
    """The file that a child loads in place of the kernel's, and the arguments it takes."""

    file: Path
    search_path: tuple[Path, ...]
    names: tuple[str, ...]

    def of(self, variants: Sequence[Sequence[Arg]]) -> tuple[tuple[Arg, ...], ...]:
        """The arguments of each variant that the entry takes."""
        return tuple(tuple(arg for arg in args if arg.name in self.names) for args in variants)


_ENTRY = """\
import importlib
import sys

import stand_in
{prelude}
stand_in.install({absent!r}, {top!r}{parse})
try:
    _module = {module}
except Exception as error:
    raise ImportError(f"{at_import}{{type(error).__name__}}: {{error}}") from error
{setup}

def {function}({names}):
    with {around}:
        return {call}
"""
_SETUP = """\
sys.path.append({folder!r})
_setup = importlib.import_module({stem!r}).{function}
"""
_OPTIONS = """\
import nki_runtime

_choice = dict(backend={name!r}, nki={nki!r}, target={target!r}, shadow=True)
_options = nki_runtime.use(**_choice, **{options!r})
"""
LANGUAGES = {"beta1": ("beta1", "0.1"), "beta2": ("beta2", VERSIONS[-1])}


def write_old_entry(laid: Laid, case: CorpusCase) -> Entry:
    """An entry that runs the kernel under beta1; its outcome has the facts of what it saw."""
    prelude = "import facts_of_run\n"
    around = f"facts_of_run.recording({str(laid.top)!r})"
    given = [arg.name for arg in case.case.args]
    launch = f"[{', '.join(map(str, case.case.grid))}]" if case.case.grid else ""
    return _write(laid, case, "beta1", given, launch, prelude, ", facts_of_run.parse", around)


def write_new_entry(laid: Laid, case: CorpusCase, gridded: frozenset[str]) -> Entry:
    """An entry that runs the migrated kernel under beta2; `gridded` still ask for a program id.

    An output that the kernel does not take any more is not given.
    """
    names = parameters(laid.extracted.file, case.case.kernel)
    given = [
        arg.name
        for arg in case.case.args
        if case.setup or arg.role != "output" or names is None or arg.name in names
    ]
    launch = ""
    if case.case.kernel in gridded and case.case.grid:
        launch = f"[{', '.join(map(str, case.case.grid))}]"
    prelude = f"import launching\n_gridded = {sorted(gridded)!r}\n"
    return _write(laid, case, "beta2", given, launch, prelude, "", "contextlib.nullcontext()")


def _write(
    laid: Laid,
    chosen: CorpusCase,
    language: str,
    given: Sequence[str],
    launch: str,
    prelude: str,
    parse: str,
    around: str,
) -> Entry:
    case, extracted = chosen.case, laid.extracted
    module = f"importlib.import_module({extracted.module!r})"
    setup = ""
    if chosen.setup:
        file, function = chosen.setup
        setup = _SETUP.format(folder=str(laid.top / SETUPS), stem=file.stem, function=function)
        target = "_module" if language == "beta1" else "launching.Migrated(_module, _gridded)"
        call = f"_setup({target}, {', '.join(f'{name}={name}' for name in given)})"
    else:
        call = f"_module.{case.kernel}{launch}({bound(extracted.file, case.kernel, given)})"
    if chosen.options:
        name, nki = LANGUAGES[language]
        options = dict(chosen.options)
        prelude += _OPTIONS.format(name=name, nki=nki, target=chosen.target, options=options)
    text = "import contextlib\n" + _ENTRY.format(
        prelude=prelude,
        absent=list(extracted.absent),
        top=str(laid.top),
        parse=parse,
        module=module,
        at_import=AT_IMPORT,
        setup=setup,
        function=ENTRY_FUNCTION,
        names=", ".join(given),
        around=around,
        call=call,
    )
    folder = Path(tempfile.mkdtemp(prefix="entry-", dir=laid.top.parent))
    (folder / ENTRY_FILE).write_text(text, encoding="utf-8")
    search = (folder, BETA1 / "child", CHILD, *extracted.search_path)
    return Entry(folder / ENTRY_FILE, search, tuple(given))


def bound(file: Path, kernel: str, given: Sequence[str]) -> str:
    """Positional as far as the case follows the signature (lists of tensors are told by place)."""
    names = parameters(file, kernel) or []
    positional = []
    for name in names:
        if name not in given:
            break
        positional.append(name)
    rest = [f"{name}={name}" for name in given if name not in positional]
    return ", ".join((*positional, *rest))


def readable(text: str, laid: Laid) -> str:
    """A message without the folders of this run, or of the run that it was kept from."""
    for place in (f"{laid.top}{os.sep}", f"{laid.top.parent}{os.sep}"):
        text = text.replace(place, "")
    return " ".join(_KEPT.sub("", text).split())


_KEPT = re.compile(r"(?<!\S)/\S*/(?:old|new)/|entry-\w+/corpus_case\.py:\d+: ")
