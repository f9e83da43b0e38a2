"""Compile with the vendor's package, run on a device.

The compiler and the runtime are in different processes, and neither is imported in this one.
Compilation is a pool of its own, so that candidates compile while others run; a process that runs
has one core, by environment variable.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from secrets import token_hex

import numpy as np

from neuroncore.commands.files import naming_output
from neuroncore.commands.folders import remove_abandoned
from neuroncore.errors import KernelError
from neuroncore.program import emit, with_canonical_names
from neuroncore.surface import VERSIONS
from nkigym.runners.background import Run, failure
from nkigym.runners.neuron_installation import (
    PER_LOGICAL,
    PHYSICAL_CORES,
    VISIBLE_CORES,
    NeuronError,
    cores,
    installed,
    visible_cores,
)
from nkigym.runners.neuron_processes import (
    COMPILE,
    COMPILED,
    LOG,
    RUN,
    CompilePayload,
    RunPayload,
    end_of,
    is_complete,
)
from nkigym.runners.protocol import Case, Measurement, with_values, wrong_times
from tokenplan.executors import Event, Failed, Finished, Job, Limits, pool


@dataclass(slots=True)
class Neuron:
    """The vendor's compiler and a device. `artefacts` keeps what was compiled, by content.

    Raises NeuronError where packages or devices are absent, or their NKI version is unknown.
    """

    target: str
    artefacts: Path
    jobs: int = 1
    compile_limit_s: float = 600.0
    run_limit_s: float = 120.0
    warmup: int = 10
    repetitions: int = 100
    devices: Path = Path("/dev")
    name: str = "neuron"
    hidden_s: float = field(default=0.0, init=False)
    """Seconds of compilation during which something ran or another compiled."""
    _versions: dict[str, str] = field(init=False)
    _nki: str = field(init=False)
    _cores: list[int] = field(init=False)
    token: str = field(default_factory=lambda: token_hex(4), init=False)
    """In names of folders in which this driver compiles."""

    def __post_init__(self) -> None:
        self._versions = installed()
        self._nki = ".".join(self._versions["nki"].split(".")[:2])
        if self._nki not in VERSIONS:
            raise NeuronError(
                f"NKI {self._versions['nki']} is installed, which no source is written for",
                expected=", ".join(VERSIONS),
            )  # fmt: skip
        number = cores(self.target, self.devices)
        if not number:
            raise NeuronError(f"{self.devices} has no device files", expected="neuron0, neuron1, …")
        self._cores = visible_cores(number, os.environ.get(VISIBLE_CORES, ""))
        with naming_output("--artefacts", self.artefacts):
            self.artefacts.mkdir(parents=True, exist_ok=True)
        self.artefacts = self.artefacts.absolute()  # a compiler may change the folder

    def measure(self, cases: Sequence[Case], watch: Callable[[Measurement], None]) -> None:
        """Compile the best predictions first; run each on a core as soon as it is compiled."""
        with self.begin(watch, len(cases)) as run:
            for case in sorted(cases, key=lambda case: case.predicted_ns):
                run.submit(case)
            run.finish()
        self.hidden_s = run.hidden_s

    def begin(self, watch: Callable[[Measurement], None], num_cores: int | None = None) -> Run:
        """Cases that are compiled and run as they are submitted, on so many cores at most (default:
        as many as are compiled at a time).
        """
        return _Run(self, watch, max(1, min(len(self._cores), num_cores or self.jobs)))

    def payload(self, case: Case) -> CompilePayload:
        """The source for the installed version, in the folder of its content: programs that differ
        in names alone have one.
        """
        program = with_canonical_names(replace(case.program, nki=self._nki))
        source = emit(program)
        outputs = tuple(
            (name, array.shape, array.dtype)
            for name, array in zip(program.results, case.expected, strict=True)
        )
        content = json.dumps([source, self.target, self._versions], sort_keys=True)
        folder = self.artefacts / sha256(content.encode()).hexdigest()[:32]
        return CompilePayload(
            folder, source, program.name, case.inputs, outputs, self.target, self._versions,
            f"{folder.name}.{self.token}.",
        )  # fmt: skip

    def environments(self) -> list[dict[str, str]]:
        """One core for each process."""
        one = {PHYSICAL_CORES: str(PER_LOGICAL)}
        return [{VISIBLE_CORES: str(core), **one} for core in self._cores]


class _Run(Run):
    """Cases that are compiled by one pool, run by another."""

    def __init__(
        self, runner: Neuron, watch: Callable[[Measurement], None], num_cores: int
    ) -> None:
        self._compilers = pool(runner.jobs, Limits(runner.compile_limit_s))
        limit, environments = Limits(runner.run_limit_s), runner.environments()
        self._devices = pool(num_cores, limit, "", environments)
        super().__init__(watch, self._compilers, self._devices)
        self._runner, self._cached = runner, set[str]()
        remove_abandoned(runner.artefacts, "*.*.*")  # of drivers that were killed
        self._payloads: dict[str, CompilePayload] = {}
        self._compiling: dict[Path, list[str]] = {}
        """By the folder, the cases that wait for its content."""

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        remove_abandoned(self._runner.artefacts, f"*.{self._runner.token}.*")

    def submit(self, case: Case) -> None:
        key = case.key
        self.cases[key] = case
        try:
            payload = self._payloads[key] = self._runner.payload(case)
        except KernelError as wrong:  # what the installed version cannot express
            self._report(Measurement(key, "error", str(wrong)))
            return
        if is_complete(payload.folder):
            self._cached.add(key)
            self._devices.submit(self._job(key))
        elif payload.folder in self._compiling:
            self._cached.add(key)
            self._compiling[payload.folder].append(key)
        else:
            self._compiling[payload.folder] = [key]
            self._compilers.submit(Job(key, COMPILE, payload))

    def step(self, wait_s: float) -> None:
        self._compilers.step(self._compiled, wait_s)
        self._devices.step(self._ran, wait_s)

    def _job(self, key: str) -> Job:
        payload = RunPayload(self._payloads[key], self._runner.warmup, self._runner.repetitions)
        return Job(key, RUN, payload)

    def _compiled(self, event: Event) -> None:
        if not isinstance(event, Finished | Failed):
            return
        self.has_spent(event)
        log = ""
        if isinstance(event, Failed) and event.kind != "error":  # an error carries it
            log = self._log(event.key)
        for key in self._compiling.pop(self._payloads[event.key].folder):
            if isinstance(event, Finished):
                self._devices.submit(self._job(key))
            else:
                found = event._replace(key=key, log=f"{event.log}{log}")
                self._report(failure(found, "compilation"))

    def _log(self, key: str) -> str:
        """The end of what a compilation has printed that did not end by itself."""
        name = f"{self._payloads[key].unfinished}*/{COMPILED}/{LOG}"
        logs = sorted(self._runner.artefacts.glob(name), key=lambda log: log.stat().st_mtime)
        return end_of(logs[-1]) if logs else ""

    def _ran(self, event: Event) -> None:
        if isinstance(event, Failed):
            self._report(failure(event, "execution"))
        elif isinstance(event, Finished):
            outputs, times_ns = event.value
            if wrong := wrong_times(times_ns, self._runner.repetitions):
                self._report(Measurement(event.key, "error", f"execution: {wrong}"))
                return
            found = Measurement(
                event.key, "ok", p50_ns=float(np.percentile(times_ns, 50)),
                p99_ns=float(np.percentile(times_ns, 99)), times_ns=tuple(times_ns),
            )  # fmt: skip
            self._report(with_values(self.cases[event.key], found, outputs))

    def _report(self, found: Measurement) -> None:
        self.watch(
            replace(
                found,
                predicted_ns=self.cases[found.key].predicted_ns,
                compile_s=self.spent_s.get(found.key, 0.0),
                is_cached=found.key in self._cached,
            )
        )
