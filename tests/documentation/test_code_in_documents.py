"""Every Python block of a README or a document runs: the blocks of one file, in order, together."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from members import ROOT
from pages import REFERENCE, reference

# The fence must say `python` and nothing else; `python (not run: why)` is passed over.
PYTHON_BLOCK = re.compile(r"^```python *\n(.*?)^```", re.MULTILINE | re.DOTALL)
UNEXPLAINED = re.compile(r"^```(?:py|python3|python +(?!\(not run: ).*) *$", re.MULTILINE)
CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)  # kernel[4](x) is not a link
DOCUMENTS = sorted(
    path
    for glob in ("*.md", "docs/**/*.md", "packages/*/*.md", "tools/*/*.md", "examples/**/*.md")
    for path in ROOT.glob(glob)
)
# A block with prompts is checked as a session, one without is run as it stands.
RUN = """
import doctest, json, sys
names = {"__name__": "__main__"}
for line, code in json.load(sys.stdin):
    where = f"{sys.argv[1]} (block at line {line})"
    if ">>> " in code:
        test = doctest.DocTestParser().get_doctest(code, names, where, sys.argv[1], line)
        runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
        runner.run(test, clear_globs=False)
        names.update(test.globs)
        if runner.failures:
            sys.exit(f"{runner.failures} failures")
    else:
        exec(compile("\\n" * line + code, sys.argv[1], "exec"), names)
"""


def python_blocks(text: str) -> list[tuple[int, str]]:
    """(line of the fence, code) of every block that is to run."""
    return [(text.count("\n", 0, m.start()) + 1, m[1]) for m in PYTHON_BLOCK.finditer(text)]


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


WITH_CODE = [path for path in DOCUMENTS if python_blocks(path.read_text(encoding="utf-8"))]


def runs(name: str, text: str) -> None:
    """Run the blocks as a reader at the root of a clone does."""
    command = (sys.executable, "-W", "error", "-c", RUN, name)
    blocks = json.dumps(python_blocks(text))

    done = subprocess.run(
        command, input=blocks, cwd=ROOT, env=os.environ, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", WITH_CODE, ids=named)
def test_the_code_of_a_document_runs(path: Path):
    runs(named(path), path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", REFERENCE)
def test_the_code_of_a_reference_page_runs_or_says_why_not(page: str):
    assert UNEXPLAINED.findall(reference(page)) == []
    runs(page, reference(page))


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_a_block_that_does_not_run_says_why(path: Path):
    assert UNEXPLAINED.findall(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_relative_links_of_a_document_lead_somewhere(path: Path):
    prose = CODE.sub("", path.read_text(encoding="utf-8"))
    links = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", prose)

    assert [link for link in links if not (path.parent / link).exists()] == []
