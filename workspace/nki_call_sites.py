"""tests/coverage/call_sites.json: in which shapes public 0.1 kernels call nl, nisa and nki.

`NKI_CORPUS=~/corpus python workspace/nki_call_sites.py [FILE]` reads the files that
`tests/corpora/beta1/corpus.toml` names, at their commits, and prints the table or writes it. The
shape of a call is how many arguments it gives by place and which by name: "2 dtype mask". Nothing
else of a file is kept.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from members import ROOT

CORPUS = ROOT / "tests" / "corpora" / "beta1" / "corpus.toml"
TABLE = ROOT / "tests" / "coverage" / "call_sites.json"
ABOUT = (
    "How public kernels written for NKI 0.1 call its functions: function -> shape of the call -> "
    "number of calls. A shape is the count of arguments by place, then the names of the others. "
    "Counted with ast by workspace/nki_call_sites.py over the files of tests/corpora/beta1/"
    "corpus.toml. Calls with * or ** are left out."
)
_ROOT = "neuronxcc.nki"
_SHORT = {"language": "nl", "isa": "nisa"}
_COUNTED = ("nki", "nl", "nisa", "nki.compiler")


class Bindings(ast.NodeVisitor):
    """The full names below `neuronxcc.nki` that the names of a file refer to; imports anywhere in
    it count.
    """

    def __init__(self) -> None:
        self.full: dict[str, str] = {}

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.name.startswith(_ROOT):
                bound = alias.asname or alias.name.partition(".")[0]
                self.full[bound] = alias.name if alias.asname else bound

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.module and f"{node.module}.".startswith("neuronxcc."):
            for alias in node.names:
                self.full[alias.asname or alias.name] = f"{node.module}.{alias.name}"

    def name_of(self, node: ast.expr) -> str | None:
        """The full name that an expression refers to, if it is below the root."""
        match node:
            case ast.Name(id=name):
                return self.full.get(name)
            case ast.Attribute(value=value, attr=attribute):
                owner = self.name_of(value)
                return None if owner is None else f"{owner}.{attribute}"
        return None


def calls_of(source: bytes) -> Iterator[tuple[str, str]]:
    """(function, shape) of every call of a public function of 0.1 in a file."""
    tree = ast.parse(source)
    names = Bindings()
    names.visit(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        function, shape = _function(names.name_of(node.func)), _shape(node)
        if function is not None and shape is not None:
            yield function, shape


def _function(full: str | None) -> str | None:
    """ "neuronxcc.nki.language.load" → "nl.load"; None for what is not public."""
    if full is None or not full.startswith(f"{_ROOT}.") or "._" in full:
        return None
    parts = full.removeprefix(f"{_ROOT}.").split(".")
    owner = ".".join(["nki", *parts[:-1]]) if parts[0] not in _SHORT else _SHORT[parts[0]]
    is_direct = len(parts) == 2 or (len(parts) == 1 and parts[0] not in _SHORT)
    return f"{owner}.{parts[-1]}" if is_direct and owner in _COUNTED else None


def _shape(call: ast.Call) -> str | None:
    if any(isinstance(a, ast.Starred) for a in call.args) or any(not k.arg for k in call.keywords):
        return None
    return " ".join([str(len(call.args)), *sorted(k.arg for k in call.keywords if k.arg)])


def sources(corpus: Path) -> Iterator[bytes]:
    """The files of the corpus at their commits. Raises CalledProcessError for one that is gone."""
    for entry in tomllib.loads(CORPUS.read_text(encoding="utf-8"))["file"]:
        place = ("git", "-C", str(corpus / entry["repo"]), "show")
        command = (*place, f"{entry['commit']}:{entry['path']}")
        yield subprocess.run(command, capture_output=True, check=True).stdout


def table(corpus: Path) -> dict[str, dict[str, int]]:
    """Function → shape → calls, both in alphabetical order."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for source in sources(corpus):
        for function, shape in calls_of(source):
            found[function][shape] += 1
    return {name: dict(sorted(found[name].items())) for name in sorted(found)}


def render(calls: dict[str, dict[str, int]]) -> str:
    """The table as JSON, a line per function."""
    lines = [f"  {json.dumps(name)}: {json.dumps(shapes)}" for name, shapes in calls.items()]
    return f'{{\n "about": {json.dumps(ABOUT)},\n "calls": {{\n' + ",\n".join(lines) + "\n }\n}\n"


if __name__ == "__main__":
    if "NKI_CORPUS" not in os.environ:
        sys.exit("NKI_CORPUS names no folder with clones of the corpus")
    page = render(table(Path(os.environ["NKI_CORPUS"])))
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(page, encoding="utf-8")
    else:
        print(page, end="")
