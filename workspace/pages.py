"""`python workspace/pages.py [PAGE …]`: rewrite the generated pages, or those named.

Pages are named as they are below docs/; a page is generated as a whole, or between the marks
`<!-- NAME: begin -->` and `<!-- NAME: end -->`. README.md and files with the
public address of the project are named as they are below the root. Measurements (corpus, workloads
of the generator, precision, the accuracy of the model) are not among them. Of the pages of
REFERENCE, which are long, the repository has an index.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

from members import ROOT
from public_address import addressed_files

DOCS = ROOT / "docs"
NEW_FILE = re.compile(r"--- /dev/null\n\+\+\+ b/(\S+)\n@@[^\n]*\n(?:\+[^\n]*\n)*")

Render = Callable[[str], str]
"""From the text of a page to the text that it should have."""


def printed(*command: str) -> Render:
    """The page is the output of a Python program."""
    return lambda text: _output(command)


def part(name: str, *command: str) -> Render:
    """The part called `name` is the output of a Python program; the rest stays."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"

    def render(text: str) -> str:
        before, _, rest = text.partition(begin)
        _, found, after = rest.partition(end)
        if not found:
            raise ValueError(f"the page has no lines {begin.strip()} and {end}")
        return f"{before}{begin}{_output(command).rstrip()}\n{end}{after}"

    return render


def new_files(text: str) -> str:
    """The page shows files as diffs that add them: each as it is in the repository."""

    def shown(diff: re.Match[str]) -> str:
        lines = (ROOT / diff[1]).read_text(encoding="utf-8").splitlines()
        head = f"--- /dev/null\n+++ b/{diff[1]}\n@@ -0,0 +1,{len(lines)} @@\n"
        return head + "".join(f"+{line}\n" for line in lines)

    return NEW_FILE.sub(shown, text)


def index(page: str) -> Render:
    """The page is the title of one of REFERENCE, how to print an entry, and a row per entry."""

    def render(text: str) -> str:
        title, _, rest = reference(page).partition("\n")
        head, *entries = re.split(r"^## ", rest, flags=re.MULTILINE)
        rows = [_LINKED.sub(r'<a id="\2"></a>\1', row) for row in re.findall(r"^\|.*", head, re.M)]
        if not rows:
            names = [entry.partition("\n")[0] for entry in entries]
            rows = ["| name |", "|---|", *(f'| <a id="{n}"></a>`{n}` |' for n in names)]
        return f"{title}\n\n{REFERENCE[page][1]}\n\n" + "\n".join(rows) + "\n"

    return render


@cache
def reference(page: str) -> str:
    """The whole text of a page of REFERENCE."""
    return _output(REFERENCE[page][0])


def _output(command: tuple[str, ...]) -> str:
    run = [sys.executable, *command]
    done = subprocess.run(run, cwd=ROOT, check=True, stdout=subprocess.PIPE, encoding="utf-8")
    return done.stdout


_LINKED = re.compile(r"\[([^\]]+)\]\(#([^)]+)\)")
_BUILT = "`nox -s docs` builds a page for each, in `build/site`;"
REFERENCE = {
    "instructions.md": (
        ("-m", "neuroncore"),
        f"What the machine executes. {_BUILT}\n`python -m neuroncore` prints "
        "all of them, and `help(nisa.activation)`\none, without what it rejects.",
    ),
    "rules.md": (
        ("-m", "nki_migrate", "rules", "--output-format", "md"),
        f"{_BUILT}\n`nki-migrate explain NKI1101` prints one, "
        "`nki-migrate rules --output-format md` all of them.",
    ),
    "coverage.md": (("workspace/nki_coverage.py",), ""),
    "traps.md": (
        ("workspace/traps_page.py",),
        "Kernels that give the expected values here, or in a simulator, and not on a device;\n"
        f"`nki-run --check traps script.py` reports them. {_BUILT}\n"
        "`python workspace/traps_page.py` prints all of them.",
    ),
}
"""Page of docs/ → the program that prints it, and what its index begins with, if it has one."""

PAGES: dict[str, Render] = {
    "adding-an-instruction.md": new_files,
    "architecture.md": part("contracts", "workspace/architecture.py"),
    "checks.md": part("subset", "workspace/subset_page.py"),
    "coverage.md": printed("workspace/nki_coverage.py", "--names"),
    "generator.md": part("array-api", "workspace/array_api.py"),
    "model.md": part("constants", "workspace/constants_page.py"),
    "options.md": printed("workspace/nki_options.py"),
    "timeline.svg": printed("workspace/timeline_picture.py"),
    "tokenplan-codes.md": printed("workspace/tokenplan_codes.py"),
    "versions.md": printed("workspace/nki_versions.py"),
    **{page: index(page) for page, (_, head) in REFERENCE.items() if head},
}
"""Page of docs/ → how it is generated."""

FILES: dict[str, Path] = {page: DOCS / page for page in PAGES}

PAGES["README.md"] = part("figures", "workspace/readme_figures.py")
FILES["README.md"] = ROOT / "README.md"
for _path, _render in addressed_files().items():
    _name = _path.relative_to(ROOT).as_posix().removeprefix("docs/")
    PAGES[_name], FILES[_name] = _render, _path


def rendered(page: str) -> tuple[str, str]:
    """The text of a page, and the text that it should have."""
    text = FILES[page].read_text(encoding="utf-8") if FILES[page].exists() else ""
    return text, PAGES[page](text)


def main(pages: list[str]) -> int:
    """Rewrite pages; the names of changed pages are printed."""
    if unknown := [page for page in pages if page not in PAGES]:
        print(f"{', '.join(unknown)}: not generated; expected {', '.join(PAGES)}", file=sys.stderr)
        return 2
    for page in pages or PAGES:
        text, new = rendered(page)
        if new != text:
            FILES[page].write_text(new, encoding="utf-8")
            print(page)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
