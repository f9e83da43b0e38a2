"""The commands that explain, `detect`, `rules` and `explain`, and `draft-rules`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuroncore.commands.parser import add_output_format
from neuroncore.commands.suggestions import did_you_mean
from nki_migrate.cli.inputs import read_inputs
from nki_migrate.cli.options import add_inputs
from nki_migrate.cli.settings import Chosen
from nki_migrate.engine.processing import code_of
from nki_migrate.files.sources import UnreadableSourceError, decode
from nki_migrate.index import FileIndex, Source
from nki_migrate.report.pages import render_all, render_page
from nki_migrate.rules import all_rules
from nki_migrate.settings.request import ConfigError

if TYPE_CHECKING:
    from nki_migrate.rules import Rule


def add_detect(parser: argparse.ArgumentParser) -> None:
    """Which files, and how to print what is found."""
    add_inputs(parser)
    add_output_format(parser)


def detect(given: argparse.Namespace) -> int:
    """One line per kernel: the NKI version it is written for, and what says so."""
    from nki_migrate.engine.version_detection import detect as detect_dialect

    inputs = read_inputs(given.paths, Chosen(), notebooks=given.notebooks)
    failed = [(result.path, result.error) for result in inputs.failures]
    found = []
    for item in inputs.inputs:
        try:
            index = FileIndex(Source(decode(code_of(item.task)).text, item.task.path))
        except SyntaxError as error:
            failed.append((item.task.path, f"does not parse: line {error.lineno}: {error.msg}"))
            continue
        except RecursionError:
            failed.append((item.task.path, "does not parse: nested too deeply"))
            continue
        except UnreadableSourceError as error:
            failed.append((item.task.path, str(error)))
            continue
        for function in index.functions.values():
            dialect = detect_dialect(function, index)
            found.append({
                "path": item.task.path, "line": function.node.lineno, "kernel": function.name,
                "version": dialect.name, "why": dialect.why,
            })  # fmt: skip
    line = "{path}:{line}: {kernel}: {version} ({why})\n"
    is_json = given.output_format == "json"
    text = json.dumps(found, indent=2) + "\n" if is_json else "".join(map(line.format_map, found))
    print(text, end="")
    for path, reason in failed:
        print(f"failed {path}: {reason}", file=sys.stderr)
    return 2 if failed else 0


def add_rules(parser: argparse.ArgumentParser) -> None:
    """How to print them."""
    add_output_format(parser, tuple(_FORMATS), help="md: the pages of all")


def rules(given: argparse.Namespace) -> int:
    """Every rule."""
    print(_FORMATS[given.output_format](all_rules().values()), end="")
    return 0


def _text(known: Iterable[Rule]) -> str:
    return "".join(
        f"{rule.id}  {'→'.join(rule.step)}  {rule.klass}  {rule.safety.value:<6}  {rule.title}\n"
        for rule in known
    )


def _json(known: Iterable[Rule]) -> str:
    return json.dumps([*map(_entry, known)], indent=2) + "\n"


def _entry(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "step": list(rule.step),
        "class": rule.klass,
        "safety": rule.safety.value,
        "title": rule.title,
    }


_FORMATS = {"text": _text, "json": _json, "md": render_all}


def add_explain(parser: argparse.ArgumentParser) -> None:
    """Which rule."""
    parser.add_argument("rule", metavar="RULE", help="a rule id, e.g. NKI1131")
    add_output_format(parser)


def explain(given: argparse.Namespace) -> int:
    """The page of a rule."""
    known = all_rules()
    rule = known.get(given.rule.upper())
    if rule is None:
        near = did_you_mean(given.rule.upper(), known)
        raise ConfigError(f"no rule {given.rule}{near or '; `nki-migrate rules` lists all'}")
    page = render_page(rule)
    if given.output_format == "json":
        page = json.dumps({**_entry(rule), "page": page}, indent=2) + "\n"
    print(page, end="")
    return 0


def add_draft_rules(parser: argparse.ArgumentParser) -> None:
    """Two descriptions, and where the drafts go."""
    form = "JSON, Python stubs or pages of one version: PATH, or PATH@VERSION"
    parser.add_argument("old", metavar="OLD", help=form)
    parser.add_argument("new", metavar="NEW", help="the same of the later version")
    parser.add_argument("--output-dir", type=Path, required=True, metavar="DIR",
                        help="a new or empty folder")  # fmt: skip
    add_output_format(parser)


def draft_rules(given: argparse.Namespace) -> int:
    """Drafts for a new release: signatures, rules, conformance rows, the support table's row."""
    from nki_migrate.drafting import drafts, read_api, summary, write_drafts

    files, changes = drafts(read_api(given.old), read_api(given.new))
    write_drafts(given.output_dir, files)
    if given.output_format == "json":
        made = {"output_dir": str(given.output_dir), "files": sorted(files)}
        print(json.dumps(made | json.loads(files["changes.json"]), indent=1))
        return 0
    rules = sum(name.startswith("rules/") for name in files)
    counted = f"{len(changes)} changes, {rules} rule{'s' * (rules != 1)} drafted"
    print(f"{given.output_dir}: {counted}\n{summary(changes)}", end="")
    return 0
