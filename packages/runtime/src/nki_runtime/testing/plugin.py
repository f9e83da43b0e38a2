"""The pytest plugin of nki-runtime; pytest finds it by its entry point (group `pytest11`).

`@pytest.mark.nki(version=, backend=, target=, checks=, …)` runs a test under a switch of its own;
the options `--nki`, `--nki-backend` and `--nki-target` set one for the whole session, so that test
files may import `nki` at their top. The fixture `nki_compare` holds a kernel against a reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, get_type_hints

import pytest

from neuroncore.checks import Report, resolve_checks
from neuroncore.commands.suggestions import suggestion
from neuroncore.commands.tracebacks import render, render_usage
from neuroncore.errors import KernelError, LaunchError
from neuroncore.options import Options
from nki_runtime.switch.use import use
from nki_runtime.testing.comparison import compare_with_reference

SESSION_OPTIONS = {
    "--nki": "nki",
    "--nki-backend": "backend",
    "--nki-target": "target",
}
MARKER = (
    "nki(version=None, backend=None, target=None, checks=(), **options): run the test under "
    "nki_runtime.use(...); a finding of one of `checks` that is an error fails it"
)

MARKED = ("version", "backend", "target", "checks")

_RUNNERS = ("_pytest", "pluggy", "nki_runtime")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("nki", "kernels of AWS NKI (nki-runtime)")
    for flag, name in SESSION_OPTIONS.items():
        group.addoption(
            flag, dest=f"nki_session_{name}", metavar=name.upper(),
            help=f"nki_runtime.use({name}=…) from collection to the end of the session",
        )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    given = {name: config.getoption(f"nki_session_{name}") for name in SESSION_OPTIONS.values()}
    if any(given.values()):
        try:
            config.add_cleanup(use(**given).close)
        except KernelError as wrong:
            raise pytest.UsageError(render_usage(wrong)) from None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """The test's body under the switch and the checks of its marker."""
    marker = item.get_closest_marker("nki")
    if marker is None:
        return (yield)
    report = Report()
    try:
        switch = _switch(report, *marker.args, **marker.kwargs)
    except KernelError as wrong:
        what = f"@pytest.mark.nki: {render_usage(wrong)}"
        raise pytest.fail.Exception(what, pytrace=False) from None
    with switch:
        result = yield
    errors = [finding for finding in report if finding.severity == "error"]
    if errors:
        pytest.fail("\n\n".join(map(str, errors)), pytrace=False)
    return result


def _switch(report: Report, *values: Any, **named: Any) -> Any:
    """The switch that a marker names, with its checks as observers that fill `report`."""
    fields = get_type_hints(Options)
    for name in named.keys() - {*MARKED[len(values) :], "shadow", *fields}:
        near = suggestion(name, MARKED) or suggestion(name, fields)
        what = f"two values of {name}" if name in MARKED else f"unknown parameter {name}"
        expected = f"each of {', '.join(MARKED)} at most once, or a field of Options"
        raise LaunchError(what, hint=near if name not in MARKED else None, expected=expected)
    if len(values) > len(MARKED):
        raise LaunchError("too many values by place", expected=f"at most {', '.join(MARKED)}")
    given = dict(zip(MARKED, values, strict=False)) | named
    version, backend, target = (_text(name, given.pop(name, None)) for name in MARKED[:3])
    checks = resolve_checks(_names(given.pop("checks", None)))
    watchers = [c.watcher(report) for c in checks if c.watcher]
    return use(backend, version, target, observers=watchers, **given)


def _text(name: str, value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise LaunchError(f"{name} is not a text", expected="a text in quotes", got=repr(value))


def _names(checks: Any) -> list[str]:
    """The names of `checks`, a collection or a text as for `--check`."""
    words = checks.split(",") if isinstance(checks, str) else checks or ()
    if isinstance(words, (list, tuple, set, frozenset)) and all(isinstance(w, str) for w in words):
        return [word.strip() for word in words]
    expected = "names of checks, such as ('memory', 'race')"
    raise LaunchError("checks are not names", expected=expected, got=repr(checks))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """A mistake in a kernel is shown by the user's own lines, with the caret."""
    report: Any = yield
    error = call.excinfo.value if call.excinfo is not None else None
    if report.failed and isinstance(error, KernelError):
        report.longrepr = render(error, _from_the_test(error.__traceback__)).rstrip()
    return report


def _from_the_test(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of pytest that called the test."""
    return next((t for t in _chain(trace) if _package(t) not in _RUNNERS), None)


def _chain(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _package(trace: TracebackType) -> str:
    return trace.tb_frame.f_globals.get("__name__", "").partition(".")[0]


@pytest.fixture
def nki_compare(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """`nki_compare(kernel, reference, *arrays, ulps=1, atol=0.0)`; see `compare_with_reference`."""

    def compare(kernel: Any, reference: Any, *arrays: Any, **bounds: Any) -> Any:
        for name in bounds.keys() - {"ulps", "atol"}:
            near = suggestion(name, ("ulps", "atol"))
            raise LaunchError(f"nki_compare takes no {name}", expected="ulps or atol", hint=near)
        folder = request.getfixturevalue("tmp_path")
        result, difference = compare_with_reference(kernel, reference, arrays, folder, **bounds)
        if difference is not None:
            pytest.fail(difference, pytrace=False)
        return result

    return compare
