"""The child process of `verify`: loads one file, calls one function, writes what it returns.

The code it runs is the user's: anything that code does to its process ends here.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neuroncore.python_source import parse_python
from nki_migrate.verify.arrays import Array, load_array, save_array
from nki_migrate.verify.guard import hold_process
from nki_migrate.verify.job import FACTS, read_job, write_result

if TYPE_CHECKING:
    from neuroncore.checks import Finding


def _switched(backend: Mapping[str, Any] | None) -> contextlib.AbstractContextManager[Any]:
    if backend is None:
        return contextlib.nullcontext()
    import nki_runtime

    name, version, target = (str(backend[key]) for key in ("name", "nki", "target"))
    options = dict(backend["options"])
    if backend["nki"] is None:
        return nki_runtime.use(backend=name, shadow=True, **options)
    return nki_runtime.use(backend=name, nki=version, target=target, shadow=True, **options)


def _load(file: Path) -> Any:
    """The file as a module under its own name, so that `__main__` blocks stay quiet."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module


def parameters(file: Path, function: str) -> list[str] | None:
    """The parameter names of a function, read from the source; None = takes any keyword."""
    tree = parse_python(file.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == function:
            given = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            return None if node.args.kwarg else [argument.arg for argument in given]
    return None


def bind(
    names: Sequence[str] | None, values: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Positional arguments as far as the values follow the signature, the others by keyword."""
    if names is None:
        return list(values.values()), {}
    positional: list[Any] = []
    for name in names:
        if name not in values:
            break
        positional.append(values[name])
    rest = names[len(positional) :]
    return positional, {name: values[name] for name in rest if name in values}


def _arguments(folder: Path, variant: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        entry["name"]: load_array(folder, entry["array"]) if "array" in entry else _value(entry)
        for entry in variant
    }


def _value(entry: Mapping[str, Any]) -> Any:
    value = entry["value"]
    return tuple(value) if isinstance(value, list) else value


def _as_arrays(returned: Any) -> list[Array]:
    if returned is None:
        return []
    several = isinstance(returned, list | tuple)
    return [np.asarray(value) for value in (returned if several else [returned])]


def _missing(names: Sequence[str] | None, variant: Sequence[Mapping[str, Any]]) -> list[str]:
    if names is None:
        return []
    return [e["name"] for e in variant if e["name"] not in names and e["role"] != "output"]


def _call(
    function: Callable[..., Any],
    names: Sequence[str] | None,
    folder: Path,
    variant: Sequence[Mapping[str, Any]],
    is_kernel: bool,
) -> tuple[list[Array], int]:
    """Results in the order of `Outcome`, and how many of them are not `inout` arguments."""
    values = _arguments(folder, variant)
    if is_kernel:
        if missing := _missing(names, variant):
            raise TypeError(f"the case gives {', '.join(missing)}, which is not a parameter")
        positional, keywords = bind(names, values)
    else:
        positional, keywords = [], {n: v for n, v in values.items() if names is None or n in names}
    results = _as_arrays(function(*positional, **keywords))
    if not is_kernel:
        return results, len(results)
    by_role = {
        role: [values[e["name"]] for e in variant if e["role"] == role and _taken(names, e)]
        for role in ("output", "inout")
    }
    results = [r for r in results if not _is_output(r, by_role["output"])] + by_role["output"]
    return results + by_role["inout"], len(results)


def _is_output(result: Array, outputs: Sequence[Array]) -> bool:
    """Whether a kernel returned one of its output arguments, which counts once."""
    return any(
        result.shape == np.shape(one) and result.tobytes() == np.asarray(one).tobytes()
        for one in outputs
    )


def _taken(names: Sequence[str] | None, entry: Mapping[str, Any]) -> bool:
    return names is None or entry["name"] in names


def _is_wrapped_elsewhere(file: Path, name: str) -> bool:
    """Whether the file makes a kernel of a plain function at its launch: `nki.baremetal()(f)`."""
    from nki_migrate.index import FileIndex, Source

    found = FileIndex(Source(file.read_text("utf-8", "replace"))).functions.get(name)
    return found is not None and found.entry and not found.decorated


def _jit(backend: Mapping[str, Any]) -> Callable[..., Any]:
    """`nki.jit` of the language that runs."""
    module = "neuronxcc.nki" if backend["name"] == "beta1" else "nki"
    return importlib.import_module(module).jit


class _Recording(contextlib.ExitStack):
    """The recording of `nki-run --record`, one document per variant; needs the switch set."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        from nki_runtime import recording

        self._folder, self._recording = folder, recording
        self.load = recording.load
        self.enter_context(recording.instrumented())

    @contextlib.contextmanager
    def variant(self, number: int) -> Iterator[None]:
        """Write what the kernels that run inside the block show, also when it ends in an error."""
        documents: list[Mapping[str, Any]] = []
        try:
            with self._recording.recorded(documents, self._folder):
                yield
        finally:
            text = json.dumps(documents[0])
            (self._folder / FACTS.replace("*", f"{number:04}")).write_text(text, encoding="utf-8")


class Checks:
    """The checks that a job names: its source is read once, its runs are watched.

    What they need is imported only where a job names them: an old kernel starts without.
    """

    def __init__(self, job: Mapping[str, Any]) -> None:
        self._job = job
        self._of_source: list[Finding] = []
        self._of_runs: Iterable[Finding] = ()

    def read_source(self) -> None:
        """Constructs of the kernel and its callees that the job's compiler rejects."""
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

    @contextlib.contextmanager
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


def _run(folder: Path, job: Mapping[str, Any], checks: Checks) -> Iterator[dict[str, Any]]:
    file = Path(job["file"])
    sys.path[:0] = job["search_path"]
    with _switched(job["backend"]), checks.watching(), contextlib.ExitStack() as stack:
        recording = stack.enter_context(_Recording(folder)) if job["record"] else None
        function = getattr((recording.load if recording else _load)(file), job["function"])
        names = parameters(file, job["function"])
        if job["backend"] and _is_wrapped_elsewhere(file, job["function"]):
            function = _jit(job["backend"])(function)
        if job["launch"] is not None:
            launch = tuple(job["launch"])
            function = function[launch if len(launch) > 1 else launch[0]]
        for number, variant in enumerate(job["variants"]):
            with recording.variant(number) if recording else contextlib.nullcontext():
                results, returned = _call(function, names, folder, variant, bool(job["backend"]))
            arrays = [
                save_array(array, folder / f"out_{number}_{i}.bin")
                for i, array in enumerate(results)
            ]
            yield {"arrays": arrays, "returned": returned}


def _explain(error: BaseException, file: str) -> str:
    """The error in one line, with the deepest line of the user's own file that led to it."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    where = f"{file}:{frames[-1].lineno}: " if frames else ""
    return f"{where}{type(error).__name__}: {error}".rstrip(": ")


def limit_memory(mebibytes: int) -> None:
    """Limit the address space of this process, where the system can."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (mebibytes << 20, mebibytes << 20))


def preload(job: Mapping[str, Any]) -> None:
    """Import what the job needs of ours, and write its bytecode: later nothing may be written."""
    sys.dont_write_bytecode = "PYTHONDONTWRITEBYTECODE" in os.environ
    with contextlib.suppress(Exception):  # the job itself reports what is wrong with its backend
        with _switched(job["backend"]):
            pass
        if job["checks"]:
            importlib.import_module("neuroncore.checks.subset")
        if job["record"]:
            importlib.import_module("nki_runtime.recording")
    sys.dont_write_bytecode = True


def main(folder: Path, attempts: int) -> int:
    """Run the job of a folder; 0 when every variant returned. What is blocked is written to the
    descriptor `attempts`.
    """
    job = read_job(folder)
    done: list[dict[str, Any]] = []
    write_result(folder, done)
    checks = Checks(job)
    guard = hold_process(folder, job["file"], attempts)
    try:
        checks.read_source()
        for entry in _run(folder, job, checks):
            done.append(entry)
            write_result(folder, done, checks.findings())
        guard.write_read()
    except BaseException as error:  # SystemExit too: the user's file may call sys.exit()
        traceback.print_exc()
        write_result(folder, done, checks.findings(), _explain(error, job["file"]))
        return 1
    finally:
        guard.write_read()
    return 0
