"""The order of a parent to a child process, as a folder of one JSON file and raw arrays.

The folder is the whole interface: the child needs nothing else, and what it managed to write
before it died is still there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nki_migrate.verify.cases import Arg
from nki_migrate.verify.guard import READ_FILE, read_attempts
from nki_migrate.verify.untrusted import read_regular

if TYPE_CHECKING:
    from nki_migrate.verify.arrays import Array

JOB, RESULT, FACTS, ATTEMPTS = "job.json", "result.json", "facts_*.json", "attempts.txt"


@dataclass(frozen=True, slots=True)
class Backend:
    """The switch to throw before the file is loaded: `nki_runtime.use(name, nki=…, **options)`."""

    name: str
    nki: str | None = None
    target: str | None = None
    options: tuple[tuple[str, Any], ...] = ()

    def under(self, options: Mapping[str, Any]) -> Backend:
        """The same with the options of a case."""
        return replace(self, options=tuple(options.items()))


def backend_for(version: str, target: str) -> Backend:
    """The backend that runs a dialect: beta1 for 0.1, beta2 at that version for the others."""
    return Backend("beta1") if version == "0.1" else Backend("beta2", version, target)


@dataclass(frozen=True, slots=True)
class Job:
    """One function of one file, to be called once per variant.

    `launch` is what goes in brackets (`kernel[4, 2](…)`), None for a plain call; `backend` None
    means a plain NumPy function, called with its arguments by name. `checks` are the ones of
    `neuroncore.checks` that the kernel has to pass. `record` requests the facts of each variant.
    """

    file: Path
    function: str
    search_path: tuple[Path, ...]
    seed: int
    variants: tuple[tuple[Arg, ...], ...]
    backend: Backend | None = None
    launch: tuple[int, ...] | None = None
    checks: tuple[str, ...] = ()
    record: bool = False

    def write(self, folder: Path) -> None:
        """Put the job into a folder, arrays filled."""
        document = {
            "file": str(self.file),
            "function": self.function,
            "search_path": [str(path) for path in self.search_path],
            "backend": asdict(self.backend) if self.backend else None,
            "launch": self.launch,
            "checks": self.checks,
            "record": self.record,
            "variants": [
                [_encode_arg(folder, arg, self.seed, i, j) for j, arg in enumerate(variant)]
                for i, variant in enumerate(self.variants)
            ],
        }
        (folder / JOB).write_text(json.dumps(document), encoding="utf-8")


def _encode_arg(folder: Path, arg: Arg, seed: int, variant: int, position: int) -> dict[str, Any]:
    if not arg.is_array:
        return {"name": arg.name, "role": arg.role, "value": arg.value}
    from nki_migrate.verify.arrays import fill_array, save_array  # NumPy: only what runs needs it

    array = fill_array(arg, seed, variant, position)
    saved = save_array(array, folder / f"in_{variant}_{position}.bin")
    return {"name": arg.name, "role": arg.role, "array": saved}


def read_job(folder: Path) -> dict[str, Any]:
    """The job document of a folder."""
    return json.loads((folder / JOB).read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of a child: of each variant it finished, and why it stopped.

    A variant's results are the returned arrays, then the `output` arguments, then the `inout`
    ones; `returned` counts all but the last group. `findings` are what the checks found, `facts`
    the facts documents of the variants that were recorded, `blocked` what the guard did not let
    the code do, whether or not the code went on after it. `files` are the user's files that it
    read.
    """

    results: tuple[tuple[Array, ...], ...] = ()
    returned: tuple[int, ...] = ()
    error: str | None = None
    findings: tuple[str, ...] = ()
    facts: tuple[Mapping[str, Any], ...] = ()
    blocked: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether the run came to its end, with nothing blocked."""
        return self.error is None and not self.blocked

    def but(self, error: str) -> Outcome:
        """The same with another reason for stopping."""
        return replace(self, error=error)

    def having_tried(self, attempts: Sequence[str]) -> Outcome:
        """The same with more that was blocked."""
        return replace(self, blocked=(*self.blocked, *attempts))


def write_result(
    folder: Path,
    done: Sequence[Mapping[str, Any]],
    findings: Sequence[str] = (),
    error: str | None = None,
) -> None:
    """Record what has been computed and found so far; readable at every moment."""
    aside = folder / f"{RESULT}.part"
    document = {"variants": list(done), "findings": list(findings), "error": error}
    aside.write_text(json.dumps(document), encoding="utf-8")
    aside.replace(folder / RESULT)


def read_result(folder: Path) -> Outcome:
    """The child's record; an empty outcome when it died before recording anything.

    The user's code can write anything into the folder.
    """
    try:
        outcome = _outcome(folder)
    except FileNotFoundError:
        outcome = Outcome()
    except _MALFORMED:
        outcome = Outcome(error="the code that ran has overwritten the record of the run")
    with suppress(FileNotFoundError, ValueError):  # written elsewhere than on Linux
        outcome = outcome.having_tried(read_attempts(read_regular(folder / ATTEMPTS)))
    return outcome


_MALFORMED = (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, MemoryError)


def _outcome(folder: Path) -> Outcome:
    document = json.loads(read_regular(folder / RESULT))
    from nki_migrate.verify.arrays import load_array

    error, variants = document["error"], document["variants"]
    return Outcome(
        tuple(tuple(load_array(folder, entry) for entry in v["arrays"]) for v in variants),
        tuple(int(v["returned"]) for v in variants),
        None if error is None else str(error),
        tuple(map(str, document["findings"])),
        tuple(json.loads(read_regular(path)) for path in sorted(folder.glob(FACTS))),
        files=_files(folder),
    )


def _files(folder: Path) -> tuple[str, ...]:
    """The files that a folder's run read, libraries aside; empty for one that did not end."""
    try:
        found = json.loads(read_regular(folder / READ_FILE))
    except FileNotFoundError:
        return ()
    return tuple(file for file in found if Path(file).is_file())
