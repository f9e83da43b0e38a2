"""`nki-scope compare`: two pages or two stores of searches, as a page, as text, as JSON."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import tempfile
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from neuroncore.commands.files import check_writable, write_output
from neuroncore.commands.parser import add_output, add_output_format
from neuroncore.errors import LaunchError
from nki_scope.document import compared, data_of, unpacked
from nki_scope.sections.comparison import comparison

STORE = b"SQLite format 3\0"
MOST_LINES = 8
"""Lines of a kernel that are printed."""


def add_compare(parser: argparse.ArgumentParser) -> None:
    """Which two files, what to write."""
    for name, of in (("first", "one run"), ("second", "the other run")):
        parser.add_argument(
            name, type=Path, metavar="FILE", help=f"the page of {of}, or a store of nkigym"
        )
    add_output(parser, "write a page of both", "FILE.html")
    add_output_format(parser)


def compare(given: argparse.Namespace) -> int:
    """The differences of two runs."""
    if given.output is not None:
        check_writable(given.output, "-o")
    first, second = (_page(file) for file in (given.first, given.second))
    found = comparison(_unpacked(given.first, first), _unpacked(given.second, second))
    print(json.dumps(found) if given.output_format == "json" else "\n".join(_text(found)))
    if given.output is not None:
        write_output("nki-scope", "-o", given.output, compared(first, second, found))
    return 0


def _unpacked(file: Path, text: str) -> dict[str, Any]:
    try:
        return unpacked(data_of(text))
    except ValueError as wrong:
        raise LaunchError(f"{file}: {wrong}") from None


def _page(file: Path) -> str:
    """The text of a page; of a store, of the page that nkigym makes of it."""
    if not file.is_file():
        raise LaunchError(f"{file}: no such file", expected="a page of --report, or a store")
    with file.open("rb") as stream:
        is_store = stream.read(len(STORE)) == STORE
    if not is_store:
        return file.read_text("utf-8", errors="replace")
    command = next(iter(entry_points(group="console_scripts", name="nkigym")), None)
    if command is None:
        raise LaunchError(
            f"{file}: a store is shown by nkigym, which is not installed",
            hint="pip install nkigym",
        )
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        page = Path(folder) / "store.html"
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            code = command.load()(["show", str(file), "--report", str(page)])
        if code or not page.is_file():
            raise LaunchError(f"{file}: not shown by nkigym", got=errors.getvalue().strip())
        return page.read_text("utf-8")


def _text(found: Mapping[str, Any]) -> Iterator[str]:
    for kernel in found["kernels"]:
        yield from _kernel(kernel)
    for side in ("first", "second"):
        if names := found[f"only_{side}"]:
            yield f"only in the {side}: {', '.join(names)}"


def _kernel(kernel: Mapping[str, Any]) -> Iterator[str]:
    first, second = kernel["first"], kernel["second"]
    mode = second["mode"].replace("_", " ")
    yield (
        f"{second['name']} on {second['target']}, {mode}: "
        f"{first['total_ns'] / 1e3:.2f} to {second['total_ns'] / 1e3:.2f} µs "
        f"({second['total_ns'] / (first['total_ns'] or 1) - 1:+.1%}), "
        f"{second['hbm_bytes'] - first['hbm_bytes']:+} HBM bytes, "
        f"{second['micro_ops'] - first['micro_ops']:+} micro-ops"
    )
    for row in kernel["lines"][:MOST_LINES]:
        path, busy = (after - before for before, after in (row["critical_path_ns"], row["busy_ns"]))
        if path or busy:
            where = row["second"] or row["first"]
            yield f"{path / 1e3:+12.2f} µs  {where}  {row['text']}"
