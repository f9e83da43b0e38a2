"""Compile with the vendor's package, run on a device.

The compiler and the runtime are in different processes, and neither is imported in this one.
Compilation is a pool of its own, so that candidates compile while others run; a process that runs
has one core, by environment variable. What is installed and which cores there are is read from
package metadata and device files.

Interfaces of the vendor's packages are as public sources use them (awslabs/nki-autotune, 2026):
`neuronxcc.nki_standalone.compile_nki_ir_kernel_to_neff`, `nkipy.runtime.BaremetalExecutor`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple

import numpy as np

from neuroncore.commands.files import naming_output
from neuroncore.commands.folders import new_folder, remove_abandoned
from neuroncore.commands.function import find_function, parse_name
from neuroncore.errors import KernelError, OptionError
from neuroncore.program import emit, with_canonical_names
from neuroncore.surface import VERSIONS
from nkigym.runners.background import Run, failure
from nkigym.runners.protocol import Case, Measurement, with_values, wrong_times
from tokenplan.executors import Event, Failed, Finished, Job, Limits, Report, pool

PACKAGES = ("nki", "neuronx-cc", "nkipy")
"""Distributions that compile and run; their versions are part of an artefact's key."""
CORES_PER_DEVICE = {"trn1": 2, "inf2": 2, "trn2": 8, "trn3": 8}
VISIBLE_CORES = "NEURON_RT_VISIBLE_CORES"
PHYSICAL_CORES, PER_LOGICAL = "NEURON_LOGICAL_NC_CONFIG", 1
"""Physical cores of a logical one; compiler and runtime have to agree, and the runtime's default on
trn2 is 2 (AWS Neuron: Logical NeuronCore configuration)."""
NEFF, LOG, VERSIONS_FILE = "file.neff", "log.txt", "versions.json"
COMPILED = "compiled"
LOG_LINES = 40
"""Of a compiler's log that a failure carries."""


class NeuronError(OptionError):
    """The vendor's packages or a device are not there."""


def cores(target: str, devices: Path = Path("/dev")) -> int:
    """The number of cores behind the device files `neuron0`, `neuron1`, …"""
    found = [file for file in devices.glob("neuron*") if re.fullmatch(r"neuron\d+", file.name)]
    return len(found) * CORES_PER_DEVICE.get(target, 1)


def visible_cores(number: int, variable: str) -> list[int]:
    """The cores that an environment variable leaves to this process, such as 0-3,6; without one,
    all of them. Raises NeuronError.
    """
    try:
        ends = [list(map(int, part.split("-"))) for part in variable.split(",") if part.strip()]
        found = {core for each in ends for core in range(each[0], each[-1] + 1)} if ends else None
    except ValueError:
        found = set()
    chosen = [core for core in range(number) if found is None or core in found]
    if not chosen:
        raise NeuronError(
            f"{VISIBLE_CORES} leaves none of the cores",
            expected=f"some of 0-{number - 1}",
            got=variable,
        )
    return chosen


def installed() -> dict[str, str]:
    """The version of each of the vendor's packages. Raises NeuronError."""
    try:
        return {name: version(name) for name in PACKAGES}
    except PackageNotFoundError as missing:
        raise NeuronError(
            f"the package {missing.name} is not installed", expected=", ".join(PACKAGES),
            hint="install the AWS Neuron SDK, or use --runner interpreter; see docs/device.md",
        ) from None  # fmt: skip


class CompilePayload(NamedTuple):
    """A kernel to compile, and where to."""

    folder: Path
    source: str
    function: str
    inputs: tuple[np.ndarray, ...]
    outputs: tuple[tuple[str, tuple[int, ...], np.dtype], ...]
    target: str
    versions: Mapping[str, str]
    unfinished: str
    """What the names of folders begin with in which it is compiled."""


class RunPayload(NamedTuple):
    """A kernel to run and the number of runs."""

    compiled: CompilePayload
    warmup: int
    repetitions: int


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
        if _is_complete(payload.folder):
            self._cached.add(key)
            self._devices.submit(self._job(key))
        elif payload.folder in self._compiling:
            self._cached.add(key)
            self._compiling[payload.folder].append(key)
        else:
            self._compiling[payload.folder] = [key]
            self._compilers.submit(Job(key, f"{__name__}:compile_kernel", payload))

    def step(self, wait_s: float) -> None:
        self._compilers.step(self._compiled, wait_s)
        self._devices.step(self._ran, wait_s)

    def _job(self, key: str) -> Job:
        payload = RunPayload(self._payloads[key], self._runner.warmup, self._runner.repetitions)
        return Job(key, f"{__name__}:run_kernel", payload)

    def _compiled(self, event: Event) -> None:
        if not isinstance(event, Finished | Failed):
            return
        self.spent_s[event.key] = event.seconds
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
        return _end_of(logs[-1]) if logs else ""

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


def _is_complete(artefact: Path) -> bool:
    return all(_has_content(artefact / name) for name in (NEFF, VERSIONS_FILE))


def _has_content(file: Path) -> bool:
    return file.is_file() and file.stat().st_size > 0


def _end_of(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-LOG_LINES:])


# -- in a process of the compiler ------------------------------------------------------------------


class _Output(NamedTuple):
    """An output as the compiler's interface takes it."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype


def compile_kernel(payload: CompilePayload, report: Report) -> None:
    """Compile in a new folder, which takes its name by content once all of it is there."""
    with new_folder(payload.unfinished, payload.folder.parent) as unfinished:
        (made := unfinished / COMPILED).mkdir()
        (made / "kernel.py").write_text(payload.source)
        (made / VERSIONS_FILE).write_text(json.dumps(dict(payload.versions)))
        with _logged(made / LOG):
            _compile(payload, made)
        if not _has_content(made / NEFF):
            raise RuntimeError(f"the compiler has written no {NEFF}")
        with contextlib.suppress(OSError):  # nothing is there, or another run was first
            if not _is_complete(payload.folder):  # what a power failure has left
                payload.folder.rename(unfinished / "incomplete")
        with contextlib.suppress(OSError):
            made.rename(payload.folder)


def _compile(payload: CompilePayload, folder: Path) -> None:
    from neuronxcc.nki_standalone import NKI_IR_VERSION, compile_nki_ir_kernel_to_neff

    os.environ["NEURON_PLATFORM_TARGET_OVERRIDE"] = payload.target
    kernel = find_function(parse_name(f"{folder}/kernel.py:{payload.function}"))
    names = _parameters(kernel)
    compile_nki_ir_kernel_to_neff(
        kernel_func=kernel,
        kernel_inputs_dict=dict(zip(names, payload.inputs, strict=True)),
        kernel_outputs=[_Output(*output) for output in payload.outputs],
        platform_target=payload.target,
        logical_nc_config=PER_LOGICAL,
        output_directory=str(folder),
        version=NKI_IR_VERSION.beta2,
        additional_compiler_args="",
    )


def _parameters(kernel: Any) -> list[str]:
    code = getattr(kernel, "func", kernel).__code__
    return list(code.co_varnames[: code.co_argcount])


@contextlib.contextmanager
def _logged(path: Path) -> Iterator[None]:
    """The process's stdout and stderr in a file; an error carries its last lines."""
    saved = os.dup(1), os.dup(2)
    with path.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            yield
        except Exception as wrong:
            what = f"{type(wrong).__name__}: {wrong}\n{_end_of(path)}"
            raise RuntimeError(what.rstrip()) from wrong
        finally:
            for number, copy in zip((1, 2), saved, strict=True):
                os.dup2(copy, number)
                os.close(copy)


# -- in a process of the runtime -------------------------------------------------------------------


class _Traced:
    """A kernel as the runtime's interface takes it."""

    def __init__(self, func: Any, code: Any) -> None:
        self.func, self._code, self.__name__ = func, code, func.__name__


def run_kernel(payload: RunPayload, report: Report) -> tuple[list[Any], list[float]]:
    """All outputs, and the ns of every repetition."""
    compiled = payload.compiled
    written = json.loads((compiled.folder / VERSIONS_FILE).read_text())
    if written != installed():
        raise RuntimeError(f"versions disagree: compiled with {written}, running {installed()}")
    from nkipy.runtime import BaremetalExecutor, CompiledKernel

    kernel = CompiledKernel(_traced(compiled), str(compiled.folder / NEFF))
    with BaremetalExecutor(verbose=0) as executor:
        outputs = executor.run(kernel, *compiled.inputs)
        statistics = executor.benchmark(
            kernel, *compiled.inputs,
            warmup_iterations=payload.warmup, benchmark_iterations=payload.repetitions,
        )  # fmt: skip
    listed = [outputs] if isinstance(outputs, np.ndarray) else list(outputs)
    return listed, [1e6 * float(ms) for ms in statistics.durations_ms]


def _traced(compiled: CompilePayload) -> _Traced:
    from nkipy.core.backend.hlo import HLOModule, HLOTensor

    kernel = find_function(parse_name(f"{compiled.folder}/kernel.py:{compiled.function}"))
    module = HLOModule(name=compiled.function)
    for name, array in zip(_parameters(kernel), compiled.inputs, strict=True):
        module.add_parameter(array.shape, array.dtype, name=name)
    module.set_results([HLOTensor(*output[1:], name=output[0]) for output in compiled.outputs])
    return _Traced(getattr(kernel, "func", kernel), module)
