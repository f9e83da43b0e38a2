"""The kernel of a run against its profile, and constants fitted to it."""

from __future__ import annotations

import sys
from pathlib import Path

from neuroncore.commands.files import check_writable, write_output
from neuroncore.errors import KernelError, LaunchError
from neuroncore.program import Program
from neuroncore.timeline import (
    Comparison,
    Constants,
    Profile,
    Timeline,
    compare,
    constants,
    constants_text,
    estimate,
    read_constants,
    refit,
)  # fmt: skip
from nki_runtime.trace import LaunchRecorder


class Profiler(LaunchRecorder):
    """Compares the kernel that a profile is of, of all that a run launches.

    `fitted`: the file for constants that are fitted to the profile; the ones that it holds already
    are where the fit begins.
    """

    def __init__(self, profile: Profile, fitted: Path | None) -> None:
        super().__init__()
        self.profile, self.fitted, self.base = profile, fitted, constants()
        if fitted is not None:
            check_writable(fitted, "--constants")
            self.base = read_constants(fitted) if fitted.is_file() else self.base

    def finish(self) -> bool:
        """Print the comparison, and write the constants; whether the profile is of no kernel."""
        for reason in self.left_out:
            sys.stderr.write(f"nki-run: --profile: a kernel has no estimate:\n{reason}\n")
        try:
            program, found = self._best()
            sys.stdout.write(f"{found}\n")
            if self.fitted is not None:
                self._fit(program, self.fitted)
        except KernelError as reason:
            reason.place = None  # it is about a file, not about the line that was running
            sys.stderr.write(f"nki-run: {reason}\n")
            return True
        return False

    def _best(self) -> tuple[Program, Comparison]:
        """The kernel whose lines the profile has. Raises the error of the last one for none."""
        error = LaunchError("--profile: no kernel ran that has an estimate")
        found: list[tuple[Program, Comparison]] = []
        for program in self.legal():
            try:
                found.append((program, compare(self.profile, self._play(program, self.base))))
            except KernelError as reason:
                error = reason
        if not found:
            raise error
        return max(found, key=lambda each: each[1].matched)

    def _play(self, program: Program, values: Constants) -> Timeline:
        return estimate(program, constants=values, verified=True)

    def _fit(self, program: Program, file: Path) -> None:
        """Write the constants that suit the profile. Raises LaunchError where none are better."""
        found = refit(self.profile, lambda values: self._play(program, values), self.base)
        if not found.is_better:
            raise LaunchError(
                f"--constants {file} is not written: no constants suit the profile better",
                got="; ".join(found.implausible) or None,
                hint="the differences are in lines of their own, not in what all lines share",
            )
        sys.stdout.write(f"{found}\n")
        about = f"fitted to {self.profile.name} of {program.name} on {program.target}"
        write_output("nki-run", "--constants", file, constants_text(found.constants, about))
