"""docs/schemas describes what the commands print for machines."""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import chromium
import pytest
from jsonschema import Draft202012Validator
from members import ROOT
from tests.documentation.test_migrating_page import make_repository
from tests.programs.texts import COPY

from neuroncore.source_location import OUR_PACKAGES
from tokenplan.tile_ir import compiler

SCHEMAS = ROOT / "docs/schemas"
MATCHER = re.compile(r'"regexp": (".*")')


@pytest.fixture(scope="module")
def repository(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    make_repository(folder)
    (folder / "program.txt").write_text(COPY)
    (folder / "repository").mkdir()
    (folder / "repository/k.py").write_text(UNWRITTEN.replace("range", "affine_range"))
    for name, parameters in (("a", "x"), ("b", "x, y=None")):
        stubs = folder / name / "nki/isa"
        stubs.mkdir(parents=True)
        (stubs / "__init__.pyi").write_text(f"def activation({parameters}): ...\n")
    (folder / "sweep.toml").write_text(
        '[[function]]\nname = "doubling.py:double"\nshapes = [["f32[256,8]"]]\nbudget = 2\n'
    )
    output(
        folder,
        "tokenplan",
        "explain",
        "program.txt",
        "--output-format",
        "json",
        "-o",
        "plan.json",
    )
    (folder / "reported.py").write_text(UNWRITTEN)
    output(folder, "nki-run", "--check", "memory", "--report", "page.html", "reported.py")
    return folder


def output(folder: Path, module: str, *arguments: str) -> str:
    """What the command prints."""
    installed = Path(sys.executable).with_name(module)
    command = [installed] if installed.is_file() else [sys.executable, "-m", module]
    done = subprocess.run([*command, *arguments], cwd=folder, capture_output=True, text=True)
    return done.stdout


def validator(name: str) -> Any:
    schema = json.loads((SCHEMAS / name).read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


UNWRITTEN = """
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def unwritten():
    tile = nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.sbuf)
    out = nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out
unwritten()
"""
COMMANDS = {
    "check": ("findings.json", "nki_migrate", "check", "kernels"),
    "fix": ("findings.json", "nki_migrate", "fix", "kernels", "--verify", "--output-dir", "new"),
    "pr": ("findings.json", "nki_migrate", "pr", "repository"),
    "draft-rules": (
        "draft-rules.json", "nki_migrate", "draft-rules", "a@0.6", "b@0.7",
        "--output-dir", "drafts",
    ),
    "verify": (
        "verify.json", "nki_migrate", "verify", "kernels/softmax.py", "kernels/softmax.py",
        "--entry", "softmax_kernel",
    ),
    "rules": ("rules.json", "nki_migrate", "rules"),
    "explain": ("explain.json", "nki_migrate", "explain", "NKI1101"),
    "detect": ("detect.json", "nki_migrate", "detect", "kernels"),
    "nki-run": ("findings.json", "nki_runtime", "--check", "memory"),
    "nki-run alone": ("findings.json", "nki_runtime"),
    "nkigym enumerate": (
        "nkigym-enumerate.json", "nkigym", "enumerate", "--tiles", "1,2,2", "--transforms",
        "data-reuse",
    ),
    "nkigym tune": (
        "nkigym-tune.json", "nkigym", "tune", "doubling.py:double", "--spec", "f32[256,8]",
        "--budget", "3", "--store", "found.db",
    ),
    "nkigym sweep": (
        "nkigym-sweep.json", "nkigym", "sweep", "sweep.toml", "--store", "swept.db",
    ),
    "nkigym check": (
        "nkigym-check.json", "nkigym", "check", "program.txt", "--of", "program.txt",
    ),
    "nkigym show": ("nkigym-store.json", "nkigym", "show", "found.db"),
    "nkigym best": ("nkigym-store.json", "nkigym", "best", "found.db"),
    "nkigym measure": ("nkigym-measure.json", "nkigym", "measure", "found.db"),
    "nkigym export": ("nkigym-export.json", "nkigym", "export", "found.db"),
    "nkigym replay": ("nkigym-replay.json", "nkigym", "replay", "found.db"),
    "tokenplan explain-code": ("tokenplan-code.json", "tokenplan", "explain-code", "W2"),
    "tokenplan check": ("tokenplan-check.json", "tokenplan", "check", "plan.json"),
    "tokenplan sweep": (
        "tokenplan-sweep.json", "tokenplan", "sweep", "tiles.py:exponentials", "--set",
        "rows=16,48,64", "--store", "tiles.db",
    ),
    "nki-scope png": (
        "scope-output.json", "nki-scope", "png", "page.html", "source", "-o", "s.png",
    ),
    "nki-scope show": ("scope-page.json", "nki-scope", "show", "page.html"),
    "nki-scope compare": (
        "scope-compare.json", "nki-scope", "compare", "page.html", "page.html",
    ),
    "nkigen": (
        "nkigen.json", "nkigen_lite", "doubling.py:double", "--spec", "f32[8,8]", "--explain",
    ),
}  # fmt: skip


TILES = """
from tokenplan.tile_ir import TileKernel

def exponentials(rows):
    kernel = TileKernel("k")
    a, b = kernel.array("a", (1024, 64)), kernel.array("b", (1024, 64))
    with kernel.loop("k", 1024 // rows) as k:
        kernel.store(b, (k, 0), kernel.compute("exp2", kernel.load(a, (k, 0), (rows, 64))))
    return kernel
"""
"""48 rows are not a power of two: that candidate is illegal."""


@pytest.mark.parametrize("name", COMMANDS)
def test_the_output_of_a_command_is_as_its_schema_describes(repository, name):
    schema, module, *arguments = COMMANDS[name]
    (repository / "doubling.py").write_text("def double(x):\n    return x + x\n")
    (repository / "unwritten.py").write_text(UNWRITTEN)
    (repository / "tiles.py").write_text(TILES)
    if name == "tokenplan sweep" and (absent := compiler.missing("tileiras", "nvdisasm")):
        pytest.skip(absent)
    if name == "nki-scope png" and chromium.PATH is None:
        pytest.skip("no browser is installed: pictures of pages are not tested")
    program = ["unwritten.py"] if module == "nki_runtime" else []

    text = output(repository, module, *arguments, "--output-format", "json", *program)

    document = json.loads(text)
    assert [error.message for error in validator(schema).iter_errors(document)] == []
    assert name != "nki-run" or document["files"][0]["findings"]
    assert name != "nki-scope show" or (document["findings"] and document["kernels"])


def test_every_command_has_json_output_and_a_row_of_the_schemas():
    described = (SCHEMAS / "README.md").read_text(encoding="utf-8")

    for command, shown in every_command():
        choices = re.findall(r"--output-format \{(.*?)\}", shown)
        assert choices and "json" in choices[0].split(","), command
        assert f"`{command}" in described, command


def every_command() -> Iterator[tuple[str, str]]:
    """The commands of the project with their subcommands, and the help of each."""
    for point in entry_points(group="console_scripts"):
        if point.module.partition(".")[0] in OUR_PACKAGES:
            main, shown = point.load(), helped(point.load())
            commands = re.findall(
                r"^    ([a-z-]+) ", shown.partition("\noptions:")[0], re.MULTILINE
            )
            yield from ((f"{point.name} {name}", helped(main, name)) for name in commands)
            if not commands:
                yield point.name, shown


def helped(main: Callable[[list[str]], int], *words: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as shown, pytest.raises(SystemExit):
        main([*words, "--help"])
    return shown.getvalue()


def test_every_schema_is_used_and_listed():
    names = {path.name for path in SCHEMAS.glob("*.json")}

    assert names == {schema for schema, *_ in COMMANDS.values()}
    assert all(f"({name})" in (SCHEMAS / "README.md").read_text() for name in names)


def test_the_problem_matcher_reads_a_line_of_the_concise_format(repository):
    (pattern,) = MATCHER.findall((SCHEMAS / "README.md").read_text(encoding="utf-8"))
    text = output(repository, "nki_migrate", "check", "kernels", "--output-format", "concise")

    first = re.match(json.loads(pattern), text.splitlines()[0])
    assert first is not None and first.groups()[:4] == (
        "kernels/causal_softmax.py",
        "3",
        "1",
        "NKI1101",
    )
