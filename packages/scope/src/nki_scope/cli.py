"""`nki-scope`: opens pages and makes pictures of them."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import shutil
import subprocess
import sys
import tempfile
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from html import unescape
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from urllib.parse import quote

from neuroncore.commands.files import check_writable, naming_output, write_output, write_whole
from neuroncore.commands.parser import Command, add_output, add_output_format, at_least, make_parser
from neuroncore.commands.running import run_commands
from neuroncore.commands.streams import command_line
from neuroncore.commands.suggestions import did_you_mean
from neuroncore.errors import LaunchError
from nki_scope.document import OTHER_VERSION, Columns, compared, data_of, summary_of, unpacked
from nki_scope.sections import METRICS, compare_pages

_EXAMPLES = """\
examples:
  nki-run --report softmax.html softmax.py     write a page
  nki-scope open softmax.html                  show it in a browser
  nki-scope show softmax.html                  print its times, advice and findings
  nki-scope compare old.html new.html          what has changed, line by line
  nki-scope compare old.db new.db -o c.html    the same of two stores of nkigym, as a page
  nki-scope png softmax.html Memory -o m.png   a picture of one of its views
  nki-scope svg softmax.html Memory -o m.svg   the same as lines and text that scale
"""
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
HEIGHT = 900
STORE = b"SQLite format 3\0"
MOST_LINES = 8
"""Lines of a kernel that `compare` prints."""
KERNEL = {
    "name": "name", "target": "target", "nki": "nki", "mode": "mode", "launches": "launches",
    "total_ns": "totalNs", "launch_ns": "launchNs", "bottleneck": "bottleneck", "mfu": "mfu",
    "mbu": "mbu", "dma_efficiency": "dmaEfficiency", "hbm_bytes": "hbmBytes", "flops": "flops",
    "micro_ops": "numOps",
}  # fmt: skip
"""Name in JSON → name in a page, as in the tables below."""
ADVICE = {
    "title": "title", "text": "text", "experiment": "experiment", "is_bound": "isBound",
    "gain_ns": "gainNs",
}  # fmt: skip
FINDING = {name: name for name in ("label", "severity", "message", "cure", "count")}


@command_line("nki-scope")
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that the command line names; its exit code."""
    parser = make_parser("nki-scope", "Show pages about runs of kernels.", _EXAMPLES)
    commands = [
        Command("open", "show a page in a browser", _add_page, _open),
        Command("show", "print the kernels, advice and findings of a page", _add_page, _show),
        Command("compare", "two runs, line by line", _add_compare, _compare),
        Command("png", "a picture of a view, made by a browser", partial(_add_view, "png"), _png),
        Command(
            "svg", "a view as scalable graphics, by a browser", partial(_add_view, "svg"), _svg
        ),
    ]
    return run_commands(parser, commands, argv, lambda: (LaunchError,))


def _add_page(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="a page that --report wrote")
    add_output_format(parser)


def _open(given: argparse.Namespace) -> int:
    address = _address(given.file)
    with _reading(given.file):
        data_of(given.file.read_text("utf-8", errors="replace"))
    if not webbrowser.open(address):
        raise LaunchError(
            f"{given.file}: no browser was found",
            hint=f"open {address} in one, or set BROWSER to its command",
        )
    _print_output(given, "open", None)
    return 0


def _print_output(given: argparse.Namespace, command: str, output: Path | None) -> None:
    """With `--output-format json` the command, the page and the file that was written."""
    if given.output_format == "json":
        written = None if output is None else str(output)
        print(json.dumps({"command": command, "page": str(given.file), "output": written}))


def _show(given: argparse.Namespace) -> int:
    _address(given.file)
    document = _unpacked(given.file, given.file.read_text("utf-8", errors="replace"))
    with _reading(given.file):
        is_json = given.output_format == "json"
        text = json.dumps(_contents(document)) if is_json else _text(document)
    print(text)
    return 0


def _text(document: Mapping[str, Any]) -> str:
    found = (f"{title}\n{text}".strip("\n") for title, text in summary_of(document))
    return "\n\n".join([*document["errors"], *found])


def _contents(document: Mapping[str, Any]) -> dict[str, Any]:
    """What is printed of a page as JSON, as docs/schemas/scope-page.json describes it."""
    files = [file["path"] for file in document["files"]]

    def place(at: list[int] | None) -> dict[str, Any] | None:
        return None if at is None else {"file": files[at[0]], "line": at[1]}

    def advice(entry: Mapping[str, Any]) -> dict[str, Any]:
        return _named(ADVICE, entry) | {"lines": [place(at) for at in entry["lines"]]}

    return {
        "command": document["command"],
        "kernels": [
            _named(KERNEL, kernel) | {"advice": [advice(entry) for entry in kernel["advice"]]}
            for kernel in document["kernels"]
        ],
        "findings": [_named(FINDING, f) | {"at": place(f["at"])} for f in document["findings"]],
        "errors": document["errors"],
    }


def _named(names: Mapping[str, str], values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values[key] for name, key in names.items()}


def _add_compare(parser: argparse.ArgumentParser) -> None:
    """Which two files, what to write."""
    for name, of in (("first", "one run"), ("second", "the other run")):
        parser.add_argument(
            name, type=Path, metavar="FILE", help=f"the page of {of}, or a store of nkigym"
        )
    add_output(parser, "write a page of both", "FILE.html")
    add_output_format(parser)


def _compare(given: argparse.Namespace) -> int:
    """The differences of two runs."""
    if given.output is not None:
        check_writable(given.output, "-o")
    first, second = (_page_text(file) for file in (given.first, given.second))
    documents = _unpacked(given.first, first), _unpacked(given.second, second)
    with _reading(given.first, given.second):
        found = compare_pages(*documents)
    text = "\n".join(_differences(found))
    print(json.dumps(found) if given.output_format == "json" else text)
    if given.output is not None:
        packed = Columns().packed(found)
        write_output("nki-scope", "-o", given.output, compared(first, second, packed, text))
    return 0


def _unpacked(file: Path, text: str) -> dict[str, Any]:
    with _reading(file):
        return unpacked(data_of(text))


@contextlib.contextmanager
def _reading(*files: Path) -> Iterator[None]:
    """Raises LaunchError for a file that is not a page, and for pages of another version."""
    try:
        yield
    except (ValueError, KeyError) as wrong:
        what = OTHER_VERSION if isinstance(wrong, KeyError) else wrong
        raise LaunchError(
            f"{' or '.join(map(str, files))}: {what}",
            hint="write it again with --report of this version",
        ) from None


def _page_text(file: Path) -> str:
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


def _differences(found: Mapping[str, Any]) -> Iterator[str]:
    for kernel in found["kernels"]:
        yield from _kernel_differences(kernel)
    for side in ("first", "second"):
        if names := found[f"only_{side}"]:
            yield f"only in the {side}: {', '.join(names)}"


def _kernel_differences(kernel: Mapping[str, Any]) -> Iterator[str]:
    first, second = kernel["first"], kernel["second"]
    mode = second["mode"].replace("_", " ")
    names = " and ".join(dict.fromkeys((first["name"], second["name"])))
    yield (
        f"{names} on {second['target']}, {mode}: "
        f"{first['total_ns'] / 1e3:.2f} to {second['total_ns'] / 1e3:.2f} µs "
        f"({second['total_ns'] / (first['total_ns'] or 1) - 1:+.1%}), "
        f"{second['hbm_bytes'] - first['hbm_bytes']:+} HBM bytes, "
        f"{second['micro_ops'] - first['micro_ops']:+} micro-ops"
    )
    for row in kernel["lines"][:MOST_LINES]:
        path, *others = (after - before for before, after in (row[name] for name in METRICS))
        if path or any(others):
            _, hbm_bytes, micro_ops = others
            counts = f"{hbm_bytes:+.0f} HBM bytes, {micro_ops:+.0f} micro-ops"
            where = row["second"] or row["first"]
            yield f"{path / 1e3:+12.2f} µs  {counts:32}  {where}  {row['text']}"


def _add_view(suffix: str, parser: argparse.ArgumentParser) -> None:
    _add_page(parser)
    parser.add_argument("view", metavar="VIEW", help="the name of a tab, such as Timeline")
    parser.add_argument(
        "-o", dest="output", type=partial(_output_file, f".{suffix}"), required=True,
        metavar=f"FILE.{suffix}",
    )  # fmt: skip
    parser.add_argument("--width", type=at_least(1), default=1280, help="in pixels (default 1280)")
    parser.add_argument("--height", type=at_least(1), default=HEIGHT, help=f"(default {HEIGHT})")


def _output_file(suffix: str, name: str) -> Path:
    """The path of an output. Raises ArgumentTypeError for a name of another format."""
    file = Path(name)
    if file.suffix.lower() != suffix:
        raise argparse.ArgumentTypeError(f"{name} does not end in {suffix}, which is written")
    return file


def _png(given: argparse.Namespace) -> int:
    check_writable(given.output, "-o")
    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder) / "picture.png"
        _browse(given, _view(given), f"--screenshot={picture}")
        if not picture.is_file():
            raise LaunchError("the browser made no picture")
        with naming_output("-o", given.output):
            write_whole(given.output, partial(shutil.copyfile, picture))
    sys.stderr.write(f"nki-scope: -o wrote {given.output}\n")
    _print_output(given, "png", given.output)
    return 0


def _svg(given: argparse.Namespace) -> int:
    check_writable(given.output, "-o")
    shown = _browse(given, f"{_view(given)}.svg", "--dump-dom")
    found = re.search(r'<pre id="svg">(.+)</pre>', shown, re.DOTALL)
    if found is None:
        raise LaunchError(f"{given.file}: the browser made no picture")
    write_output("nki-scope", "-o", given.output, unescape(found[1]) + "\n")
    _print_output(given, "svg", given.output)
    return 0


def _view(given: argparse.Namespace) -> str:
    """The name of the view as the page has it. Raises LaunchError where it has none."""
    _address(given.file)
    _unpacked(given.file, given.file.read_text("utf-8", errors="replace"))
    shown = _browse(given, "", "--dump-dom")
    names = [unescape(name) for name in re.findall(r'role="tab"[^>]*>([^<]*)<', shown)]
    found = {name.casefold(): name for name in names}
    if given.view.casefold() not in found:
        raise LaunchError(
            f"{given.file}: no view {given.view!r}{did_you_mean(given.view, names)}",
            expected=" or ".join(names),
        )
    return found[given.view.casefold()]


def _browse(given: argparse.Namespace, fragment: str, action: str) -> str:
    """What a browser without a window prints about the page."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise LaunchError("a picture needs a browser", expected="one of " + ", ".join(BROWSERS))
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run(
            [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             f"--user-data-dir={profile}", f"--window-size={given.width},{given.height}",
             "--virtual-time-budget=10000", action, f"{_address(given.file)}#{quote(fragment)}"],
            capture_output=True, check=False,
        )  # fmt: skip
    if done.returncode:
        raise LaunchError(f"{browser} made no picture", got=done.stderr.decode()[-300:])
    return done.stdout.decode()


def _address(page: Path) -> str:
    if not page.is_file():
        raise LaunchError(f"{page}: no such page", expected="a file that --report wrote")
    return page.resolve().as_uri()
