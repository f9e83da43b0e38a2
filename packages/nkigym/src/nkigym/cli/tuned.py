"""A winner as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from nkigym.cli.writing import MARK
from nkigym.tuning import Tuned


def headed(tuned: Tuned, named: str) -> str:
    """The source below lines that say what it was tuned from, and how to get it again."""
    report = tuned.report
    rows = [
        f"{MARK} from {named}: change that and tune it again.",
        f"#   --target {tuned.root.target} --nki {tuned.root.nki} --strategy {report.strategy} "
        f"--seed {report.seed} --budget {report.candidates}",
        f"#   {report.best_ns / 1e3:,.2f} µs of {report.root_ns / 1e3:,.2f} µs, "
        f"{tuned.ratio:.2f} x what {tuned.binding} needs",
    ]
    rows += [f"#   {json.dumps(step)}" for step in tuned.schedule]
    return "\n".join([*rows, "", tuned.source])


FORMATS: Mapping[str, Callable[[Tuned], str]] = {
    "text": str,
    "json": lambda tuned: json.dumps(tuned.to_json()),
}
"""What --output-format offers."""
