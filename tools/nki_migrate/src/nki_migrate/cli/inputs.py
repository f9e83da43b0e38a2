"""From the paths on the command line to tasks, and from results back to files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from nki_migrate.cli.settings import Chosen
from nki_migrate.engine.notebooks import SUFFIX
from nki_migrate.engine.processing import Task, failed, imports_of, unparsable
from nki_migrate.engine.results import FileResult
from nki_migrate.files.discovery import find_files
from nki_migrate.files.sources import UnreadableSourceError, decode, mentions_nki, read_bytes
from nki_migrate.files.writing import ChangedMeanwhileError, ReadOnlyError, replace_file, write_file
from nki_migrate.settings.request import ConfigError

STDIN = "-"


@dataclass(frozen=True, slots=True)
class Input:
    """A task with the file it came from; None for stdin."""

    file: Path | None
    task: Task


@dataclass(frozen=True, slots=True)
class Inputs:
    """Files to work on, and the ones that cannot be read or parsed."""

    inputs: tuple[Input, ...]
    failures: tuple[FileResult, ...]


def read_inputs(
    paths: Sequence[str],
    chosen: Chosen,
    stdin_name: str = "<stdin>",
    *,
    self_check: bool = False,
    notebooks: bool = False,
    add_ignores: bool = False,
) -> Inputs:
    """Find and read every file; one that cannot be read becomes a failure beside the others.

    Files that mention no nki are left out; of these, one that is named itself has to parse.
    """
    suffixes = (".py", SUFFIX) if notebooks else (".py",)
    named = [Path(path) for path in paths if path != STDIN]
    found = find_files(named, chosen.exclusion_for, suffixes)
    task_of = partial(Task, self_check=self_check, add_ignores=add_ignores)
    failures = [failed(problem.path, problem.reason) for problem in found.problems]
    inputs: list[Input] = []
    others: list[tuple[Path, bytes]] = []  # no word of nki, but maybe a launch of a kernel
    if STDIN in paths:
        request = chosen.request_for(Path(stdin_name))
        raw = sys.stdin.buffer.read()
        inputs.append(Input(None, task_of(stdin_name, raw, request)))
    for file in found.files:
        try:
            raw = _read(file, notebooks)
        except UnreadableSourceError as error:
            failures.append(failed(str(file), str(error)))
            continue
        if mentions_nki(raw):
            task = task_of(str(file), raw, chosen.request_for(file))
            inputs.append(Input(file, task))
        elif b"](" in raw or file in named:
            others.append((file, raw))
    stems = {Path(item.task.path).stem.encode() for item in inputs}
    for file, raw in others:
        if b"](" in raw and stems & imports_of(raw):
            task = task_of(str(file), raw, chosen.request_for(file))
            inputs.append(Input(file, task))
        elif file in named and (failure := unparsable(str(file), raw)):
            failures.append(failure)
    inputs.sort(key=lambda item: item.file.as_posix() if item.file else "")
    return Inputs(tuple(inputs), tuple(failures))


def _read(file: Path, notebooks: bool) -> bytes:
    if file.suffix == SUFFIX and not notebooks:
        raise UnreadableSourceError("a notebook; --notebooks reads its cells")
    return read_bytes(file)


def output_paths(
    inputs: Sequence[Input], paths: Sequence[str], output_dir: Path
) -> dict[Path, Path]:
    """Input file → file in the output folder, laid out as below the argument that named it.

    Raises ConfigError when two inputs would become one file.
    """
    folders = [Path(path).resolve() for path in paths if Path(path).is_dir()]
    taken: dict[Path, Path] = {}
    for item in inputs:
        if item.file is not None:
            target = output_dir / _below(item.file.resolve(), folders)
            if target in taken.values():
                first = next(file for file, other in taken.items() if other == target)
                raise ConfigError(
                    f"--output-dir: {first} and {item.file} would both become {target}; "
                    "give one folder that holds both"
                )
            taken[item.file] = target
    return taken


def _below(file: Path, folders: Sequence[Path]) -> Path:
    folder = next((folder for folder in folders if file.is_relative_to(folder)), file.parent)
    return file.relative_to(folder)


def writer(targets: dict[Path, Path] | None) -> Callable[[Input, FileResult], FileResult]:
    """A function that writes a result where it belongs and answers with the result.

    In place (`targets` None) only what changed is written; into an output folder every file that
    was read. What cannot be written becomes a failure.
    """

    def write(item: Input, result: FileResult) -> FileResult:
        if result.error is not None:
            return result
        try:
            _write(item, result, targets)
        except (OSError, ChangedMeanwhileError, ReadOnlyError, UnicodeEncodeError) as error:
            return failed(
                result.path,
                f"not written: {getattr(error, 'strerror', None) or error}",
                result.before,
            )
        return result

    return write


def _write(item: Input, result: FileResult, targets: dict[Path, Path] | None) -> None:
    new = decode(item.task.raw).encode(result.after)
    if item.file is None:
        sys.stdout.buffer.write(new)
        sys.stdout.buffer.flush()
    elif targets is not None:
        write_file(targets[item.file], new, mode_from=item.file)
    elif new != item.task.raw:
        replace_file(item.file, item.task.raw, new)
