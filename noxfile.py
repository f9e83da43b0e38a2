"""What proves what: the stages, and the sessions around them. `nox -l` prints the list.

Every session runs in the project's one uv environment; none builds its own. Stages are quick by
default, `nox -s stage1 -- thorough` runs everything.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import nox
from nox.command import CommandFailed

ROOT = Path(__file__).parent
UV_RUN = ("uv", "run", "--quiet", "--frozen")
PYTHON = (*UV_RUN, "python")
THOROUGH = "thorough"
JOBS = os.environ.get("NKI_TEST_JOBS", "auto")  # processes that run the tests of a stage


@dataclass(frozen=True, slots=True)
class Stage:
    """One claim about the project and the tests that verify it.

    `alone` names a package whose tests run with nothing else of ours installed; `nki_absent`
    fails the first test that lets `nki` into `sys.modules`; `then` are sessions that belong to
    the claim and run afterwards.
    """

    proves: str
    paths: tuple[str, ...] = ()
    alone: tuple[str, str] | None = None
    nki_absent: bool = False
    then: tuple[str, ...] = ()


STAGES = {
    1: Stage(
        "number formats, alone; the workspace itself; lint",
        paths=("tests/workspace",),
        alone=("nki-dtypes", "packages/dtypes/tests"),
        then=("lint",),
    ),
    2: Stage(
        "machine and languages called directly, no switch, `nki` absent",
        paths=(
            "packages/neuroncore/tests",
            "packages/interpreter_beta2/tests",
            "packages/interpreter_beta1/tests",
        ),
        nki_absent=True,
    ),
    3: Stage(
        "the switch: which backend `import nki` resolves to",
        ("packages/runtime/tests", "tests/switch"),
    ),
    4: Stage(
        "instruction and language coverage, 0.1 to 0.7; traps", ("tests/coverage", "tests/traps")
    ),
    5: Stage("hardening: dead code, mutations, fuzz", ("tests/hardening",)),
    6: Stage(
        "migrate, run, compare: end to end and on corpora",
        ("tools/nki_migrate/tests", "tests/end_to_end", "tests/corpora"),
    ),
    7: Stage(
        "examples, documentation code, wheels",
        ("tests/examples", "tests/documentation"),
        then=("wheels",),
    ),
    8: Stage(
        "kernel programs, effects, timeline, nkigen-lite",
        ("tests/programs", "tests/generated", "packages/nkigen_lite/tests"),
    ),
    9: Stage("certified search over schedules", ("packages/nkigym/tests", "tests/gym")),
    10: Stage(
        "token plans: proved orderings and their checker",
        ("packages/tokenplan/tests", "tests/tokenplan"),
    ),
    11: Stage("pages about runs, in a browser where one is installed", ("packages/scope/tests",)),
}

LINTERS = (
    ("ruff", "check"),
    ("ruff", "format", "--check"),
    ("pyrefly", "check", "--summary=none"),
    ("lint-imports", "--no-logo"),
    ("python", "workspace/changelogs.py"),
)

# `.venv/bin/nox` finds the locked uv beside itself, as `uv run nox` does.
os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
# Threads of BLAS wait for each other in a busy loop: where other work holds a core, a product of
# one tile takes a hundred times as long with two as with one.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

nox.options.default_venv_backend = "none"
nox.options.sessions = [*(f"stage{number}" for number in STAGES), "lint", "wheels"]


def built(paths: tuple[str, ...]) -> list[str]:
    """The entries of `paths` that contain a test file."""
    return [path for path in paths if any((ROOT / path).rglob("test_*.py"))]


def run_all(session: nox.Session, commands: list[tuple[str, ...]]) -> None:
    """Run every command, also after a failure; fail at the end with the commands that failed."""
    failed = []
    for command in commands:
        try:
            session.run(*command, external=True)
        except CommandFailed:
            failed.append(" ".join(command))
    if failed:
        session.error("failed:\n  " + "\n  ".join(failed))


def pytest(session: nox.Session, *paths: str, plugins: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The arguments after `python`: quick by default, everything after `-- thorough`.

    Tests run in JOBS processes, each with temporary folders of its own; a file's tests stay
    together, so a module's fixtures are made once.
    """
    everything = ("-m", "not hw") if THOROUGH in session.posargs else ()
    loaded = (argument for plugin in plugins for argument in ("-p", plugin))
    parallel = ("-n", JOBS, "--dist", "loadfile")
    return ("-m", "pytest", "-q", *parallel, *everything, *loaded, *paths)


def python_alone(session: nox.Session, package: str) -> tuple[str, ...]:
    """A python that has only `package`, what it needs and the locked test tools."""
    tools = str(Path(session.create_tmp()) / "test-tools.txt")
    export = ("--frozen", "--only-group", "test", "--no-hashes", "--output-file", tools)
    session.run("uv", "export", "--quiet", *export, external=True, silent=True)
    only = ("--isolated", "--frozen", "--package", package, "--no-dev", "--with-requirements")
    return ("uv", "run", "--quiet", *only, tools, "python")


def stage_commands(session: nox.Session, stage: Stage) -> list[tuple[str, ...]]:
    """One pytest run for the stage's paths, one more for the package that is tested alone."""
    commands = []
    if stage.alone and built(stage.alone[1:]):
        package, path = stage.alone
        commands.append((*python_alone(session, package), *pytest(session, path)))
    if paths := built(stage.paths):
        plugins = ("nki_absent",) if stage.nki_absent else ()
        commands.append((*PYTHON, *pytest(session, *paths, plugins=plugins)))
    return commands


def define_stage(number: int, stage: Stage) -> None:
    """Register session `stage<number>`, which fails when none of its paths holds a test."""

    def run(session: nox.Session) -> None:
        if stage.nki_absent:
            session.env["PYTHONPATH"] = str(ROOT / "workspace")  # `-p` precedes pytest's own path
        named = (*stage.paths, *(stage.alone or ())[1:])
        commands = stage_commands(session, stage)
        for path in sorted(set(named) - set(built(named))):
            session.warn(f"{path}: no tests yet")
        if not commands:
            session.error(f"stage {number} has no test to run, so it proves nothing")
        run_all(session, commands)
        for name in stage.then:
            session.notify(name, posargs=())

    run.__doc__ = stage.proves
    nox.session(name=f"stage{number}")(run)


for _number, _stage in STAGES.items():
    define_stage(_number, _stage)


@nox.session
def lint(session: nox.Session) -> None:
    """style, types, import contracts, the lock, changelog fragments"""
    in_environment = [(*UV_RUN, *linter) for linter in LINTERS]
    run_all(session, [*in_environment, ("uv", "lock", "--check")])


@nox.session
def wheels(session: nox.Session) -> None:
    """every wheel, alone, in a clean environment of each Python that runs here"""
    session.run(*PYTHON, "workspace/wheels.py", external=True)


@nox.session(default=False)
def release(session: nox.Session) -> None:
    """`-- --dry-run [PACKAGE ...]`: changelogs, tags, archives and their trials, in a clone"""
    command = (*UV_RUN, "--group", "release", "python", "workspace/release.py")
    session.run(*command, *session.posargs, external=True)


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """the documentation as a site in build/site; every link leads somewhere"""
    command = (*UV_RUN, "--group", "docs", "python", "workspace/docs_site.py")
    session.run(*command, external=True, env={"NO_MKDOCS_2_WARNING": "1"})


@nox.session(default=False)
def audit(session: nox.Session) -> None:
    """licences and known vulnerabilities of what the packages install"""
    session.run(*PYTHON, "workspace/audit.py", external=True)


@nox.session(default=False)
def compiled(session: nox.Session) -> None:
    """neuroncore with its timeline compiled: its tests, and the latencies of the plain one"""
    session.run(*PYTHON, "workspace/compiled.py", external=True)


@nox.session
def bench(session: nox.Session) -> None:
    """every benchmark prints its table; `-- NAME` runs one"""
    chosen = session.posargs or [path.stem for path in sorted((ROOT / "benchmarks").glob("*.py"))]
    if not chosen:
        session.error("benchmarks/ holds no program")
    run_all(session, [(*PYTHON, f"benchmarks/{name}.py") for name in chosen])


@nox.session(default=False)
def pictures(session: nox.Session) -> None:
    """the pictures of the README and the documents, made again (needs Chromium)"""
    session.run(*PYTHON, "workspace/pictures.py", external=True)


@nox.session(default=False)
def quality(session: nox.Session) -> None:
    """docs/quality.md: every figure measured again"""
    session.run(*PYTHON, "workspace/quality.py", "--write", external=True)


@nox.session
def replay(session: nox.Session) -> None:
    """`-- BASE`: what BASE and this tree generate from the same inputs does not differ"""
    if len(session.posargs) != 1:
        session.error("say which commit to compare with: nox -s replay -- BASE")
    session.run(*PYTHON, "workspace/replay.py", *session.posargs, external=True)
