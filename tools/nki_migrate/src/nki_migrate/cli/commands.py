"""The commands that explain: `detect`, `rules`, `explain`."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from neuroncore.commands.suggestions import did_you_mean
from nki_migrate.cli.inputs import read_inputs
from nki_migrate.cli.options import Notebooks, Paths
from nki_migrate.cli.settings import Chosen
from nki_migrate.engine.processing import code_of
from nki_migrate.engine.version_detection import detect as detect_dialect
from nki_migrate.files.sources import UnreadableSourceError, decode
from nki_migrate.index import FileIndex, Source
from nki_migrate.report.pages import render_all, render_page
from nki_migrate.rules import all_rules
from nki_migrate.settings.request import ConfigError


def detect(paths: Paths, notebooks: Notebooks = False) -> None:
    """One line per kernel: the NKI version it is written for, and what says so.

    Versions are 0.1/2.20 (outputs are parameters), 0.1, 0.2 … 0.6, mixed, unknown.

    Example: nki-migrate detect kernels/
    """
    inputs = read_inputs(paths, Chosen(), notebooks=notebooks)
    failed = [(result.path, result.error) for result in inputs.failures]
    for item in inputs.inputs:
        try:
            index = FileIndex(Source(decode(code_of(item.task)).text, item.task.path))
        except (UnreadableSourceError, SyntaxError, RecursionError) as error:
            failed.append((item.task.path, f"does not parse: {error}"))
            continue
        for function in index.functions.values():
            dialect = detect_dialect(function, index)
            place = f"{item.task.path}:{function.node.lineno}"
            typer.echo(f"{place}: {function.name}: {dialect.name} ({dialect.why})")
    for path, reason in failed:
        typer.echo(f"failed {path}: {reason}", err=True)
    raise typer.Exit(2 if failed else 0)


def rules(
    output_format: Annotated[
        Literal["text", "json", "md"], typer.Option("--output-format", help="Report format.")
    ] = "text",
) -> None:
    """Every rule: id, step, class, safety, title. `md` writes all pages: docs/rules.md.

    Example: nki-migrate rules --output-format md > docs/rules.md
    """
    known = all_rules().values()
    match output_format:
        case "md":
            typer.echo(render_all(known), nl=False)
        case "json":
            entries = [
                {
                    "id": rule.id,
                    "step": list(rule.step),
                    "class": rule.klass,
                    "safety": rule.safety.value,
                    "title": rule.title,
                }
                for rule in known
            ]
            typer.echo(json.dumps(entries, indent=2))
        case _:
            for rule in known:
                step = "→".join(rule.step)
                typer.echo(f"{rule.id}  {step}  {rule.klass}  {rule.safety.value:<6}  {rule.title}")


def explain(
    rule: Annotated[str, typer.Argument(metavar="RULE", help="A rule id, e.g. NKI1131.")],
) -> None:
    """The page of a rule: old form, new form, safety, traps, how to suppress it.

    Example: nki-migrate explain NKI1131
    """
    known = all_rules()
    wanted = rule.upper()
    if wanted not in known:
        near = did_you_mean(wanted, list(known))
        raise ConfigError(f"no rule {rule}{near}; nki-migrate rules lists all")
    typer.echo(render_page(known[wanted]), nl=False)
