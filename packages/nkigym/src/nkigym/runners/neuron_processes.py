"""The vendor's compiler and its runtime, each in a process of its own: neither is imported by the
runner.

Interfaces of the vendor's packages are as public sources use them (awslabs/nki-autotune, 2026):
`neuronxcc.nki_standalone.compile_nki_ir_kernel_to_neff`, `nkipy.runtime.BaremetalExecutor`.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neuroncore.commands.folders import new_folder
from neuroncore.commands.function import find_function, parse_name
from nkigym.runners.neuron_installation import PER_LOGICAL, installed
from tokenplan.executors import Report

COMPILE, RUN = f"{__name__}:compile_kernel", f"{__name__}:run_kernel"
"""The work of a job."""
NEFF, LOG, VERSIONS_FILE = "file.neff", "log.txt", "versions.json"
COMPILED = "compiled"
LOG_LINES = 40
"""Of a compiler's log that a failure carries."""


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


def is_complete(artefact: Path) -> bool:
    """Whether a folder of artefacts holds all that a run needs."""
    return all(_has_content(artefact / name) for name in (NEFF, VERSIONS_FILE))


def _has_content(file: Path) -> bool:
    return file.is_file() and file.stat().st_size > 0


def end_of(log: Path) -> str:
    """The last lines of a compiler's log."""
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
            if not is_complete(payload.folder):  # what a power failure has left
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
            what = f"{type(wrong).__name__}: {wrong}\n{end_of(path)}"
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
