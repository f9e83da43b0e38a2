"""The groups of the library's integration tests, and how one is run: a process per test file."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from tests.corpora.nki_library.record import Outcome, Result, begin_record, read_record

CHILD = Path(__file__).parent / "child"
ROOT = Path(__file__).parents[3]
WRAPPING = "test.utils.exceptions.InferenceException: "
TESTS = "test/integration/nkilib"
GROUPS: Mapping[str, tuple[str, ...]] = {
    "rope": ("core/embeddings/test_rope.py",),
    "rope_hf": ("core/embeddings/test_rope_hf.py",),
    "rmsnorm_quant": ("core/rmsnorm/test_rmsnorm_quant.py",),
    "rmsnorm_tkg": ("core/subkernels/test_rmsnorm_tkg.py",),
    "layernorm_tkg": ("core/subkernels/test_layernorm_tkg.py",),
    "cumsum": ("core/cumsum/test_cumsum.py",),
    "cascaded_max": ("core/max/test_cascaded_max.py",),
    "topk": ("core/topk/test_topk.py",),
    "cross_entropy_forward": ("experimental/loss/test_cross_entropy_forward.py",),
    "find_nonzero": (
        "core/subkernels/test_find_nonzero_indices.py",
        "experimental/benchmark/test_find_nonzero_indices_with_count.py",
    ),
    "indexed_flatten": ("core/subkernels/test_indexed_flatten.py",),
    "depthwise_conv1d": ("experimental/conv/test_depthwise_conv1d.py",),
    "tensor_view": ("core/utils/test_tensor_view.py",),
}
ENDED = (0, 1)  # pytest's exit status: all passed, some failed
NOTHING_TO_RUN = 5
SEED = {"NEURON_PYTHONHASHSEED": "0"}  # the harness draws the same parameters in every process
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one test file may take; None: as much as it likes."""

    seconds: float | None = None
    gibibytes: float | None = None


NO_LIMITS = Limits()


def run_groups(
    checkout: Path,
    names: Sequence[str],
    *,
    jobs: int = 1,
    limits: Limits = NO_LIMITS,
    keep: Path | None = None,
    tell: Callable[[Result], None] = lambda result: None,
) -> list[Result]:
    """The groups of those names, `jobs` at a time; `keep` as `run_group` takes it."""

    def run(name: str) -> Result:
        result = run_group(checkout, name, limits, keep)
        tell(result)
        return result

    with ThreadPoolExecutor(max(1, jobs)) as pool:
        return list(pool.map(run, names))


def run_group(
    checkout: Path, name: str, limits: Limits = NO_LIMITS, keep: Path | None = None
) -> Result:
    """Every file of a group, one after another, each in a process of its own.

    `keep`: a folder for the records. What passed or was skipped in one that lies there already, of
    the same commit of the library, is counted and not run again.
    """
    collected, outcomes, troubles = 0, [], []
    for number, file in enumerate(GROUPS[name]):
        record = keep / commit_of(checkout) / f"{name}-{number}.jsonl" if keep else None
        count, found, trouble = _run_file(checkout, f"{TESTS}/{file}", limits, record)
        collected += count
        outcomes += found
        troubles += [trouble] if trouble else []
    return Result(name, collected, tuple(outcomes), "; ".join(troubles))


def _run_file(
    checkout: Path, file: str, limits: Limits, kept: Path | None
) -> tuple[int, tuple[Outcome, ...], str]:
    with tempfile.TemporaryDirectory(prefix="nki-library-") as folder:
        record = kept or Path(folder) / "record.jsonl"
        earlier = begin_record(record)
        ended = (*ENDED, NOTHING_TO_RUN) if earlier else ENDED
        trouble = _pytest(checkout, file, Path(folder), record, limits, ended)
        if trouble and earlier:
            trouble += f", {earlier} tests by earlier runs"
        with record.open(encoding="utf-8") as lines:
            count, outcomes = read_record(lines)
    return count, tuple(without_folders(outcome, checkout) for outcome in outcomes), trouble


def without_folders(outcome: Outcome, checkout: Path) -> Outcome:
    """The reason without this machine's paths and the harness's wrapping of what was raised."""
    reason = outcome.reason.replace(f"{checkout}/", "").replace(f"{ROOT}/", "")
    return replace(outcome, reason=reason.removeprefix(WRAPPING))


def _pytest(
    checkout: Path, file: str, folder: Path, record: Path, limits: Limits, ended: Sequence[int]
) -> str:
    """Run the child; what kept it from its end, or nothing."""
    command = (
        *(sys.executable, "-m", "pytest", "-p", "nki_library_plugin", "-p", "no:cacheprovider"),
        *("--test-mode", "simulation", "--output-directory", str(folder / "artifacts")),
        *("--force-local-cleanup", "-q", "--tb=short", file),
    )
    env = child_environment(checkout) | {
        "NKI_LIBRARY_RECORD": str(record),
        "NKI_LIBRARY_SMALLEST_FIRST": str(int(limits.seconds is not None)),
        "NKI_LIBRARY_BYTES": str(int((limits.gibibytes or 0) * 2**30)),
    }
    try:
        done = subprocess.run(
            command, cwd=checkout, env=env, timeout=limits.seconds, capture_output=True, text=True
        )
    except subprocess.TimeoutExpired:
        return f"cut off after {limits.seconds:g} s"
    if done.returncode in ended:
        return ""
    said = (done.stdout + done.stderr).strip().splitlines()
    errors = [line for line in said if "Error" in line]
    return f"exit status {done.returncode}: {(errors or said or ['nothing said'])[-1].strip()}"


def child_environment(checkout: Path) -> dict[str, str]:
    """What a process needs to import the library, its harness and the stand-ins."""
    inherited = filter(None, [os.environ.get("PYTHONPATH")])
    search = (CHILD, checkout / "src", checkout, *inherited)
    return {
        **ONE_THREAD,
        **SEED,
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, search)),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def commit_of(checkout: Path) -> str:
    """The commit of the checkout, seven digits; `unknown` when git does not say."""
    command = ("git", "-C", str(checkout), "rev-parse", "--short=7", "HEAD")
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"
