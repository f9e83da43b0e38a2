"""Pages about runs: time to write and to open, size, frames, selection, what-if, recording.

    python benchmarks/scope.py

CPU time of this process with single-threaded BLAS; what the browser does is elapsed time in
headless Chromium, 1280 x 800, drawn without a GPU. Nothing here is asserted.
"""

# ruff: noqa: E402 - the number of BLAS threads is set before numpy is imported
from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import gzip
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "workspace"))

from chromium import PATH, Chromium  # type: ignore
from examples import LANGUAGES, cpu_ms, geometric_mean, load, timed_cases  # type: ignore
from large_pages import FRAMES, SELECTION, page_of_stream, seconds_of_change  # type: ignore

import nki_runtime
from neuroncore.machine.observe import watched_by
from nki_migrate.verify.arrays import fill_array
from nki_migrate.verify.cases import Case
from nki_scope.reporter import RunRecorder

Row = tuple[str, str, str]
"""What is measured, its figure, its bound."""
LARGE, SMALL = 100_000, 10_000


def large(folder: Path) -> Iterator[Row]:
    """The page of a large kernel."""
    (file, seconds), small = page_of_stream(folder, LARGE), page_of_stream(folder, SMALL)[0]
    yield f"write {LARGE:,} instructions, beyond the estimate", f"{seconds:.2f} s", "6 s"
    yield f"page of {LARGE:,} instructions", f"{file.stat().st_size / 1e6:.2f} MB", "5 MB"
    if PATH is None:
        yield "browser", "none is installed", ""
        return
    browser = Chromium()
    yield "open it", f"{browser.open(file):.2f} s", "2 s"
    yield "zoom and pan, median", f"{1000 / browser.run(FRAMES):.0f} frames/s", "30 frames/s"
    yield "selection to source", f"{browser.run(SELECTION):.0f} ms", "50 ms"
    for page, count, bound in ((small, SMALL, "200 ms"), (file, LARGE, "2000 ms")):
        browser.open(page)
        seconds = seconds_of_change(browser)
        yield f"what-if of {count:,} instructions, drawn", f"{1000 * seconds:.0f} ms", bound
    browser.close()


def examples(folder: Path) -> Iterator[Row]:
    """The pages of the attention examples."""
    for name in ("beta1/flash_attention.py", "beta2/attention.py"):
        page = folder / "page.html"
        command = (
            Path(sys.executable).with_name("nki-run"),
            "--report",
            str(page),
            str(ROOT / "examples" / name),
        )
        subprocess.run(command, check=True, capture_output=True)
        yield f"page of examples/{name}", f"{page.stat().st_size / 1e3:.0f} KB", "400 KB"


def recording() -> Iterator[Row]:
    """Runs of the example kernels with every result recorded, over plain ones."""
    ratios = {f"{backend}/{case.kernel}": _ratio(backend, case) for backend, case in timed_cases()}
    worst = max(ratios, key=lambda name: ratios[name])
    for name in (worst, "beta1/flash_attention_kernel", "beta2/attention_kernel"):
        yield f"recording all results of {name}", f"{ratios[name]:.2f} x the run", "3 x"
    yield "the same, geometric mean", f"{geometric_mean(list(ratios.values())):.2f} x", "3 x"


def _ratio(backend: str, case: Case) -> float:
    given = {
        a.name: fill_array(a, case.seed, 0, i) if a.is_array else a.value
        for i, a in enumerate(case.args)
    }
    with nki_runtime.use(backend=backend, nki=LANGUAGES[backend]):
        kernel = getattr(load(case.path), case.kernel)
        if case.grid is not None:
            kernel = kernel[case.grid]

        def recorded() -> None:
            with watched_by(RunRecorder()):
                kernel(**given)

        rounds = [(cpu_ms(lambda: kernel(**given)), cpu_ms(recorded)) for _ in range(6)][1:]
    return min(r for _, r in rounds) / min(p for p, _ in rounds)


def bundle() -> Iterator[Row]:
    """Script and style."""
    assets = b"".join(f.read_bytes() for f in (files("nki_scope") / "assets").iterdir())
    yield "script and style, compressed", f"{len(gzip.compress(assets)) / 1e3:.1f} KB", "150 KB"


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        for rows in (large(Path(folder)), examples(Path(folder)), recording(), bundle()):
            for row in rows:
                print("{:<55}{:>20}   at most {}".format(*row), flush=True)


if __name__ == "__main__":
    main()
