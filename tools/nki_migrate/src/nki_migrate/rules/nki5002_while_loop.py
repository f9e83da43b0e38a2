"""`while register:` becomes `nl.while_loop`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Edit, Finding, Safety, Severity
from nki_migrate.rules.loop_bodies import call_after, name_of_body, obstacle, register_of
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site


def _check(loop: ast.While, site: Site) -> Iterator[Finding]:
    register = register_of(loop, site)
    if register is None:
        return
    said = "a while loop over a register is deprecated: nl.while_loop"
    why = "it has an else part" if loop.orelse else obstacle(loop, site)
    language = site.index.alias_for("nl")
    if why is None and language is None:
        why = "`nki.language` is not imported"
    if why is not None:
        said = f"{said}; {why}"
        yield site.finding(
            "NKI5002", loop.test, said, severity=Severity.WARNING, safety=Safety.MANUAL
        )
        return
    source = site.index.source
    name = name_of_body(loop, site)
    line, column, _, _ = source.span(loop)
    _, _, end_line, end_column = source.span(loop.test)
    pad = source.indentation(loop.body[-1].lineno)[len(source.indentation(line)) :]
    after = call_after(
        loop,
        f"{pad}return {register}{source.newline}{source.indentation(line)}"
        f"{language}.while_loop({register}, {name})",
        site,
    )
    edits = [Edit(line, column, end_line, end_column, f"def {name}({register})"), after]
    basis = (f"`{register}` comes from register_alloc",)
    yield site.finding(
        "NKI5002", loop.test, said, severity=Severity.WARNING, edits=edits, basis=basis
    )


HOOKS = Hooks(nodes=(ast.While,), check=_check)
