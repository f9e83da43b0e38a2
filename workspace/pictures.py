"""`python workspace/pictures.py`: the pictures of the README and the documents, made again."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import tempfile
from pathlib import Path

import timeline_picture
from members import ROOT

from nki_migrate.cli import main as nki_migrate
from nki_runtime.cli import main as nki_run
from nki_scope.cli import main as nki_scope
from nkigym.cli import main as nkigym
from tokenplan.cli import main as tokenplan

PICTURES = ROOT / "docs" / "pictures"
MLP = "import numpy as np\ndef mlp(x, w):\n    return np.maximum(x @ w, 0)\n"
SIZES = {
    "Timeline": 620, "Source": 900, "Memory": 1500, "Tensors": 720, "Roofline": 900,
    "Advice": 1100, "Migration": 1000, "What if": 1000, "Schedule": 900, "Tokens": 560,
}  # fmt: skip
"""View → height of its picture."""
PLACE = Path(tempfile.gettempdir()) / "examples"
"""Pictures have this path."""


def main() -> None:
    """Write docs/timeline.svg and docs/pictures."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        timeline_picture.main()
    (ROOT / "docs" / "timeline.svg").write_text(shown.getvalue(), "utf-8")
    PICTURES.mkdir(exist_ok=True)
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir()
    try:
        pages(PLACE)
    finally:
        shutil.rmtree(PLACE)


def pages(folder: Path) -> None:
    """The views of the attention example, and of a kernel before and after its migration."""
    for name in ("beta1", "beta2"):
        shutil.copytree(ROOT / "examples" / name, folder / name)
    os.chdir(folder)
    nki_run(["--report", "attention.html", "beta2/attention.py"])
    for view in ("Timeline", "Source", "Memory", "Tensors", "Roofline", "Advice", "What if"):
        picture("attention.html", view, f"attention-{view.lower().replace(' ', '-')}.png")
    options = ["--verify", "--output-dir", "new", "--report", "migration.html"]
    nki_migrate(["fix", "beta1/softmax.py", *options])
    picture("migration.html", "Migration", "softmax-migration.png")
    nki_run(["--report", "migrated.html", "new/softmax.py:softmax_kernel", "f32[256,512]"])
    for view in ("Timeline", "Source"):
        picture("migrated.html", view, f"softmax-{view.lower()}.png")
    Path("mlp.py").write_text(MLP)
    sizes = ("--spec", "f32[64,128]", "--spec", "w=f32[128,256]")
    nkigym(["tune", "mlp.py:mlp", *sizes, "--budget", "400", "--report", "search.html"])
    picture("search.html", "Schedule", "search-schedule.png")
    stream = str(ROOT / "examples" / "tokenplan" / "stream.py:stream_kernel")
    tokenplan(["explain", stream, "--spec", "f32[512,256]", "--report", "tokens.html"])
    picture("tokens.html", "Tokens", "stream-tokens.png")


def picture(page: str, view: str, name: str) -> None:
    """One view of a page."""
    height = str(SIZES[view])
    nki_scope(["png", page, view, "-o", str(PICTURES / name), "--height", height])


if __name__ == "__main__":
    main()
