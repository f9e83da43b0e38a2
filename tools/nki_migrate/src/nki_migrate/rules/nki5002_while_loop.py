"""`while register:` becomes `nl.while_loop`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Edit, Finding, Safety, Severity
from nki_migrate.rules.loop_bodies import call_after, name_of_body, obstacle, register_of
from nki_migrate.rules.rule import Example, Rule, Site


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


_HEAD = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def drain(x, left):
    more = nisa.register_alloc(1)
"""
_BAD = """\
    while more:
        nisa.dma_copy(dst=left, src=x)
        nisa.register_load(dst=more, src=left)
"""
_GOOD = """\
    def body(more):
        nisa.dma_copy(dst=left, src=x)
        nisa.register_load(dst=more, src=left)
        return more
    nl.while_loop(more, body)
"""

RULE = Rule(
    id="NKI5002",
    step=("0.5", "0.6"),
    klass="b",
    safety=Safety.SAFE,
    title="`while register:` becomes `nl.while_loop`",
    page="""\
The body becomes a function of the register and returns it. That the name is a register is known
where nothing but `register_alloc` binds it. The body must not jump out or rebind names that are
used outside.

**Trap.** A `while` over a Python number stays: it runs when the kernel is compiled.
""",
    examples=(Example.of(_HEAD + _BAD, _HEAD + _GOOD),),
    nodes=(ast.While,),
    check=_check,
)
