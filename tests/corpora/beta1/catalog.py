"""What is to run: the kernels of `corpus.toml`, and the cases that we wrote for them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nki_migrate.verify.cases import SCHEMA as VERIFY_SCHEMA
from nki_migrate.verify.cases import Case, CasesError, cases_of

HERE = Path(__file__).parent
SCHEMA = "nki-corpus-cases/1"
# The only reasons for which an entry kernel leaves the denominator.
REASONS = ("private API", "two cores", "no public way to call it")
_KEYS = frozenset({"schema", "repo", "file", "case", "exclude"})
# What our cases have and cases of `nki-migrate verify` do not.
_OWN = ("setup", "options", "target", "seconds")


@dataclass(frozen=True, slots=True)
class CorpusFile:
    """One version of a public file, and the names of its entry kernels."""

    repo: str
    commit: str
    path: str
    blob: str
    kernels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CorpusCase:
    """A case of `nki-migrate verify`, and how its kernel is reached.

    `setup` is a function of ours that is called in place of the kernel: `setup(module, **args)`,
    where `module` is the loaded file; it launches the kernel and gives back its results. `options`
    are modelling assumptions to override (`neuroncore.options.Options`).
    """

    case: Case
    setup: tuple[Path, str] | None = None
    options: Mapping[str, Any] | None = None
    target: str = "trn2"
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Why a kernel is not counted: one of REASONS, and what that means here."""

    reason: str
    why: str


@dataclass(frozen=True, slots=True)
class Kernel:
    """An entry kernel with everything that we say about it."""

    file: CorpusFile
    name: str
    cases: tuple[CorpusCase, ...] = ()
    exclusion: Exclusion | None = None


@dataclass(frozen=True, slots=True)
class _Said:
    """The content of one cases file."""

    cases: tuple[CorpusCase, ...]
    exclusions: Mapping[str, Exclusion]


def read_corpus(folder: Path = HERE) -> tuple[Kernel, ...]:
    """Every entry kernel of `folder/corpus.toml`, with what `folder/cases/**/*.toml` say of it.

    Raises CasesError for an unknown key, file, kernel or reason, and for a kernel that is
    excluded and has a case.
    """
    files = read_files(folder)
    known = {(file.repo, file.path): file for file in files}
    said: dict[tuple[str, str], _Said] = {}
    for path in sorted((folder / "cases").rglob("*.toml")):
        key, content = _read_cases_file(path, folder, known)
        if key in said:
            raise CasesError(f"{path}: another cases file speaks about {key[1]} already")
        said[key] = content
    return tuple(
        _kernel(file, name, said.get((file.repo, file.path)))
        for file in files
        for name in file.kernels
    )


def read_files(folder: Path = HERE) -> tuple[CorpusFile, ...]:
    """Every file of `folder/corpus.toml`, also those without an entry kernel."""
    entries = tomllib.loads((folder / "corpus.toml").read_text(encoding="utf-8"))["file"]
    return tuple(_corpus_file(entry) for entry in entries)


def _corpus_file(entry: Mapping[str, Any]) -> CorpusFile:
    repo, commit, path, blob = (str(entry[key]) for key in ("repo", "commit", "path", "blob"))
    return CorpusFile(repo, commit, path, blob, tuple(entry["kernels"]))


def _kernel(file: CorpusFile, name: str, said: _Said | None) -> Kernel:
    if said is None:
        return Kernel(file, name)
    cases = tuple(case for case in said.cases if case.case.kernel == name)
    return Kernel(file, name, cases, said.exclusions.get(name))


def _read_cases_file(
    path: Path, folder: Path, known: Mapping[tuple[str, str], CorpusFile]
) -> tuple[tuple[str, str], _Said]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise CasesError(f"{path}: not TOML: {error}") from None
    if unknown := sorted(set(document) - _KEYS):
        raise CasesError(f"{path}: unknown key {unknown[0]!r}")
    if document.get("schema") != SCHEMA:
        raise CasesError(f'{path}: expected schema = "{SCHEMA}", got {document.get("schema")!r}')
    key = (document.get("repo", ""), document.get("file", ""))
    if key not in known:
        raise CasesError(f"{path}: corpus.toml has no file {key[1]!r} of {key[0]!r}")
    cases = _cases(path, document, folder, known[key])
    return key, _Said(cases, _exclusions(path, document, known[key], cases))


def _cases(
    path: Path, document: Mapping[str, Any], folder: Path, file: CorpusFile
) -> tuple[CorpusCase, ...]:
    tables = [dict(table) for table in document.get("case", [])]
    own = [{key: table.pop(key, None) for key in _OWN} for table in tables]
    for table in tables:
        table["file"] = file.path
    # `reference` and `setup` are named relative to their folders, not to the cases file
    plain = cases_of({"schema": VERIFY_SCHEMA, "case": tables}, folder / "references" / path.name)
    for case in plain:
        if case.kernel not in file.kernels:
            raise CasesError(f"{path}: {file.path} has no entry kernel {case.kernel!r}")
    return tuple(_with_own(path, case, keys, folder) for case, keys in zip(plain, own, strict=True))


def _with_own(path: Path, case: Case, keys: Mapping[str, Any], folder: Path) -> CorpusCase:
    setup = None
    if keys["setup"]:
        file, _, function = str(keys["setup"]).rpartition(":")
        setup = (folder / "setups" / file, function)
        if not setup[0].is_file() or case.grid is not None:
            raise CasesError(f"{path}: {case.kernel}: setup needs a file, and launches by itself")
    if case.reference is None or not case.reference[0].is_file():
        raise CasesError(f"{path}: {case.kernel}: a case needs a reference in {folder}/references")
    return CorpusCase(case, setup, keys["options"], keys["target"] or "trn2", keys["seconds"])


def _exclusions(
    path: Path, document: Mapping[str, Any], file: CorpusFile, cases: Sequence[CorpusCase]
) -> dict[str, Exclusion]:
    found: dict[str, Exclusion] = {}
    with_case = {case.case.kernel for case in cases}
    for table in document.get("exclude", []):
        if set(table) != {"kernel", "reason", "why"}:
            raise CasesError(f"{path}: exclude takes kernel, reason and why, got {sorted(table)}")
        name, reason = table["kernel"], table["reason"]
        if name not in file.kernels or name in with_case:
            raise CasesError(f"{path}: {name} is not an entry kernel of the file, or has a case")
        if reason not in REASONS:
            raise CasesError(f"{path}: {name}: reason must be one of {', '.join(REASONS)}")
        found[name] = Exclusion(reason, table["why"])
    return found
