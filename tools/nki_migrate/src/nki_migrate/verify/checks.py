"""The target's checks of a migrated kernel, inside the child process that runs it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neuroncore.checks import Finding


class Checks:
    """The checks that a job names: its source is read once, its runs are watched.

    What they need is imported only where a job names them: an old kernel starts without.
    """

    def __init__(self, job: Mapping[str, Any]) -> None:
        self._job = job
        self._of_source: list[Finding] = []
        self._of_runs: Iterable[Finding] = ()

    def read_source(self) -> None:
        """What the compiler of the job's version rejects in the kernel and all it reaches."""
        if "subset" in self._job["checks"]:
            from neuroncore.checks.subset import check_script
            from neuroncore.options import Options, make_options

            self._of_source = check_script(
                Path(self._job["file"]),
                self._job["backend"]["nki"] or "0.1",
                kernels=[self._job["function"]],
                search_path=[Path(folder) for folder in self._job["search_path"]],
                options=make_options(Options(), dict(self._job["backend"]["options"])),
            )

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Let the other checks watch the kernels that run inside the block."""
        names = [name for name in self._job["checks"] if name != "subset"]
        if not names:
            yield
            return
        from neuroncore.checks import watching

        with watching(*names) as self._of_runs:
            yield

    def findings(self) -> list[str]:
        """The errors found so far, a line each; warnings do not fail a verification."""
        found = [*self._of_source, *self._of_runs]
        return [str(finding).splitlines()[0] for finding in found if finding.severity == "error"]
