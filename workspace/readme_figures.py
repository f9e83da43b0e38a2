"""`python workspace/readme_figures.py`: the rows of docs/quality.md that README.md shows."""

from __future__ import annotations

from members import ROOT

SHOWN = (
    "example kernels migrated and shown equal",
    "the main job, first run",
    "the main job, second run, nothing changed",
    "nki-run of a small kernel, beyond NumPy",
    "kernels in 122 styles migrated to 0.7 and verified",
    "kernels of the Neuron SDK that do what they must",
    "tests of the NKI Library that pass",
    "error of the latency model, median, 70 rows",
    "error of the latency model, median, publications left out",
    "time of kernels under nki-beta2 over NumPy's",
    "time of kernels under triton-viz over NumPy's",
    "instructions of generated kernels over nkipy's",
    "generated kernels, times as fast after a search",
    "migration rules",
    "tests",
    "mutations that tests must notice",
)
"""Names of figures, in the order of the page."""


def table(page: str) -> str:
    """The head of the table of `page` and the rows of SHOWN, without the commands.

    Raises ValueError for a figure that the page does not have.
    """
    lines = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]
    rows = {cells[0].removeprefix("| "): cells[:3] for cells in lines}
    if missing := [name for name in SHOWN if name not in rows]:
        raise ValueError(f"docs/quality.md has no figure {', '.join(missing)}")
    head, *body = [" | ".join(rows[name]) + " |" for name in ("figure", *SHOWN)]
    return "\n".join([head, "|---|---|---|", *body])


if __name__ == "__main__":
    print(table((ROOT / "docs" / "quality.md").read_text(encoding="utf-8")))
