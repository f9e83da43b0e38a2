"""neuroncore with its timeline compiled by mypyc, compared with the plain one: tests and latencies.

    compiled.py DIR    builds a wheel for this computer and this Python into DIR
    compiled.py        builds one, installs it into a clean environment, runs the timeline's tests
                       there, compares latencies of programs with both, prints how long it takes

Both need a C compiler. Every other build of neuroncore is plain and needs none: the wheel is built
from a copy of the package whose build system is another one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from time import process_time

from neuroncore.program import parse_program
from neuroncore.timeline import latency_ns
from neuroncore.timeline.playing import micro_ops

ROOT = Path(__file__).resolve().parents[1]
CORE, PLACE = ROOT / "packages/neuroncore", "workspace/compiled.py"
COMPILERS = ("cc", "gcc", "clang")
PLAYING = {
    "compilation": ("call_demands", "compiler", "loops"),
    "dependences": ("access", "region_series", "regions", "tracks"),
    "model": ("bars", "clock", "lanes"),
    "periodicity": ("extrapolation", "steady_state"),
    "playing": ("micro_ops", "sites", "skipped_periods", "state"),
    "resources": ("ports", "reservations", "streams"),
}
"""Folder of the timeline → its modules that play programs, which are compiled together."""
SOURCES = [
    f"src/neuroncore/timeline/{f}/{name}.py" for f, names in PLAYING.items() for name in names
]
BUILD_SYSTEM = f"""\
[build-system]
requires = ["hatchling>=1.27,<2"]
build-backend = "hatchling.build"

[tool.hatch.build.targets.wheel]
packages = ["src/neuroncore"]

[tool.hatch.build.targets.wheel.hooks.mypyc]
dependencies = ["hatch-mypyc>=0.16,<1", "mypy>=2,<3"]
mypy-args = ["--ignore-missing-imports", "--follow-imports=silent"]
include = {json.dumps(SOURCES)}
"""
SEEDS, ROUNDS = 200, 50
LEAVE_OUT = ("freed_at_once",)
"""Tests of what is compiled otherwise: functions inside functions are freed by the garbage
collector.
"""


def build(into: Path) -> Path:
    """The wheel, in that directory."""
    with tempfile.TemporaryDirectory() as scratch:
        copy, made = Path(scratch) / "neuroncore", Path(scratch) / "dist"
        leave_out = shutil.ignore_patterns("tests", "changelog.d", "__pycache__")
        shutil.copytree(CORE, copy, ignore=leave_out)
        project = copy / "pyproject.toml"
        text = project.read_text(encoding="utf-8")
        project.write_text(text[: text.index("[build-system]")] + BUILD_SYSTEM, encoding="utf-8")
        command = ["uv", "build", "--quiet", "--wheel", "--out-dir", made, "--python"]
        subprocess.run([*command, sys.executable, copy], cwd=copy, check=True)
        (wheel,) = made.glob("*.whl")
        into.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(wheel, into))


def compare_with_plain() -> int:
    """Build, test, compare; 1 where the two differ or a test fails."""
    with tempfile.TemporaryDirectory() as scratch:
        python = _environment(Path(scratch))
        left_out = " and ".join(f"not {name}" for name in LEAVE_OUT)
        tests = [python, "-m", "pytest", "-q", CORE / "tests/timeline", "-k", left_out]
        failed = subprocess.run(tests, cwd=ROOT, check=False).returncode
        plain, compiled = (_asked(each) for each in (Path(sys.executable), python))
    assert compiled.pop("file").endswith((".so", ".pyd")), "nothing is compiled"
    assert plain.pop("file").endswith(".py"), "what was to be plain is compiled"
    took = {name: (plain.pop(name), compiled.pop(name)) for name in ("matmul, µs", "all, ms")}
    differ = [name for name in plain if plain[name] != compiled[name]]
    print(
        f"{len(plain)} latencies of programs, {len(differ)} differ: {', '.join(differ) or 'none'}"
    )
    for name, (slow, fast) in took.items():
        print(f"{name}: plain {slow:,.0f}, compiled {fast:,.0f}, {slow / fast:.2f} times as fast")
    return int(bool(failed or differ))


def _environment(scratch: Path) -> Path:
    """A Python with the compiled wheel and what its tests need."""
    wheel = build(scratch)
    subprocess.run(["uv", "venv", "-q", "--python", sys.executable, scratch / "env"], check=True)
    python = scratch / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    needed = ("pytest", "pytest-timeout", "hypothesis", ROOT / "packages/dtypes", wheel)
    subprocess.run(["uv", "pip", "install", "-q", "--python", python, *needed], check=True)
    return python


def _asked(python: Path) -> dict:
    """What `latencies` returns in that Python."""
    asked = [python, __file__, "--latencies"]
    return json.loads(subprocess.run(asked, cwd=ROOT, check=True, capture_output=True).stdout)


def latencies() -> dict:
    """Latency of each program, which file plays them, and how long it takes."""
    sys.path[:0] = [str(CORE / "tests"), str(ROOT)]
    kernels, random = (import_module(f"timeline.{name}") for name in ("kernels", "random_kernels"))
    matmul = import_module("benchmarks.model.latency").MATMUL
    programs = {name: kernels.program(text) for name, text in kernels.ALL.items()}
    programs |= {f"random {n}": random.random_program(n, f"trn{1 + n % 3}") for n in range(SEEDS)}
    start = process_time()
    found: dict = {name: latency_ns(each, verified=True) for name, each in programs.items()}
    found |= {"file": micro_ops.__file__, "all, ms": (process_time() - start) * 1e3}
    program, took = parse_program(matmul), []
    for _ in range(ROUNDS):
        start = process_time()
        latency_ns(program, verified=True)
        took.append((process_time() - start) * 1e6)
    return found | {"matmul, µs": min(took)}


def main(arguments: list[str]) -> int:
    """As the head of this file says; 2 where what it needs is not there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dir", nargs="?", type=Path)
    parser.add_argument("--latencies", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.latencies:
        print(json.dumps(latencies()))
        return 0
    for what, names in {"a C compiler": COMPILERS, "uv": ("uv",)}.items():
        if not any(map(shutil.which, names)):
            where = f"none of {', '.join(names)} is on PATH"
            print(f"{what} is needed: {where}; try `uv run python {PLACE}`", file=sys.stderr)
            return 2
    if given.dir is None:
        return compare_with_plain()
    print(build(given.dir))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
