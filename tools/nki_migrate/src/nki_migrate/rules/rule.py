"""What a rule is: an id, a page, examples that run as tests, and hooks.

Two kinds of hook, for two kinds of work:

- `nodes` + `check`: a *span rule*. For each node of the listed `ast` classes, in source order,
  `check(node, site)`
  yields findings whose edits replace character spans (`site.replace`, `site.finding`).
  Renames, keywords, decorators, imports; all rules of the steps after 0.2 are of this kind.
- `calls`: a *lowering rule*. Maps canonical names ("nl.load", "nisa.nc_matmul") to functions
  that rewrite such a
  call to destination-passing form inside `nki_migrate.lower`; only the step 0.1 → 0.2 has them.

A rule without hooks is one that the lowering or another rule reports under its own id.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from nki_migrate.findings import Edit, Finding, Safety, Severity
from nki_migrate.index import FileIndex, shadowed_call
from nki_migrate.request import Request

if TYPE_CHECKING:
    from nki_migrate.index import Function

__all__ = ["Example", "Rule", "Site"]


@dataclass(frozen=True, slots=True)
class Example:
    """A file before and after one step, as whole module texts.

    An example of a manual rule shows the TODO in `good`. `target` runs further steps than
    the rule's own.
    """

    bad: str
    good: str
    target: str | None = None
    unsafe: bool = False

    @staticmethod
    def of(bad: str, good: str, *, target: str | None = None, unsafe: bool = False) -> Example:
        """An example from indented triple-quoted texts."""
        clean = (textwrap.dedent(t).lstrip("\n") for t in (bad, good))
        return Example(*clean, target=target, unsafe=unsafe)

    @staticmethod
    def kernel(bad: str, good: str, *, parameters: str = "x", unsafe: bool = False) -> Example:
        """An example of 0.1 → 0.2 from two kernel bodies; imports and signature are added."""
        return Example(
            _module(bad, parameters, "neuronxcc."), _module(good, parameters, ""), unsafe=unsafe
        )


def _module(body: str, parameters: str, namespace: str) -> str:
    nki = f"import {namespace}nki as nki" if namespace else "import nki"
    imports = [nki, *(f"import {namespace}nki.{m}" for m in ("isa as nisa", "language as nl"))]
    if "np." in body:
        imports.append("import numpy as np")
    text = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    return "\n".join([*imports, "", "", "@nki.jit", f"def kernel({parameters}):", text, ""])


@dataclass(frozen=True, slots=True)
class Rule:
    """One migration rule.

    `klass` is the class of the rule catalogue: (a) syntax alone, (b) needs facts, (c) can
    only report. `page` is Markdown: old form, new form, why, the trap. `native`: the rule is about
    code that people wrote for the step's first version, not about what an earlier step wrote.
    `keeps`: it says that something stays, and reports nothing.
    """

    id: str
    step: tuple[str, str]
    klass: Literal["a", "b", "c"]
    safety: Safety
    title: str
    page: str = ""
    examples: tuple[Example, ...] = ()
    nodes: tuple[type[ast.AST], ...] = ()
    check: Callable[[Any, Site], Iterable[Finding]] | None = None
    calls: Mapping[str, Callable[..., Any]] = field(default_factory=lambda: MappingProxyType({}))
    native: bool = False
    keeps: bool = False


@dataclass(frozen=True, slots=True)
class Site:
    """What a span rule may look at, and how it says what it wants."""

    index: FileIndex
    request: Request

    def canonical(self, node: ast.AST | None) -> str | None:
        """The canonical name: "nl.load", "nki.jit", "np.float32", …; None if it is not imported."""
        return self.index.canonical(node)

    def source(self, node: ast.AST) -> str:
        """The node's text as written."""
        return self.index.source.segment(node)

    def function_of(self, node: ast.AST) -> Function | None:
        """The innermost kernel or kernel helper around the node; None in host code."""
        return self.index.device_function_of(node)

    def replace(self, node: ast.AST, text: str) -> Edit:
        """Replace a node's text."""
        return Edit(*self.index.source.span(node), text)

    def insert_before(self, node: ast.AST, text: str) -> Edit:
        """Insert text right before a node."""
        line, column, _, _ = self.index.source.span(node)
        return Edit(line, column, line, column, text)

    def remove_line(self, node: ast.stmt) -> Edit:
        """Remove a statement that has its lines to itself, line ending included."""
        line, _, end_line, _ = self.index.source.span(node)
        return Edit(line, 1, end_line, len(self.index.source.lines[end_line - 1]) + 1, "")

    def insert_after(self, node: ast.AST, text: str) -> Edit:
        """Insert text right after a node."""
        _, _, line, column = self.index.source.span(node)
        return Edit(line, column, line, column, text)

    def without_keyword(self, call: ast.Call, *names: str) -> Edit:
        """Remove keyword arguments, with their commas, from a call."""
        gone = [k for k in call.keywords if k.arg in names]
        items: list[ast.AST] = [*call.args, *call.keywords]
        kept = [self.source(a) for a in items if a not in gone]
        source = self.index.source
        if not items:
            return self.replace(call, self.source(call))
        if len(gone) == 1 and len(items) > 1:
            return self._cut(items, items.index(gone[0]))
        first, last = source.span(items[0]), source.span(items[-1])
        return Edit(first[0], first[1], last[2], last[3], ", ".join(kept))

    def _cut(self, items: list[ast.AST], i: int) -> Edit:
        spans = [self.index.source.span(n) for n in items]
        if i > 0:
            return Edit(spans[i - 1][2], spans[i - 1][3], spans[i][2], spans[i][3], "")
        return Edit(spans[0][0], spans[0][1], spans[1][0], spans[1][1], "")

    def finding(
        self,
        rule: str,
        node: ast.AST,
        message: str,
        *,
        edits: Iterable[Edit] = (),
        severity: Severity = Severity.ERROR,
        safety: Safety = Safety.SAFE,
        assumption: str | None = None,
        basis: tuple[str, ...] = (),
    ) -> Finding:
        """A finding at a node; without edits the engine leaves a TODO above the statement.

        Edits that would call a builtin by a name that is something else there are left out.
        """
        edits = tuple(edits)
        new = (f"{e.text}(" if e.text.isidentifier() else e.text for e in edits)
        taken = shadowed_call(self.index, node, (self.source(node),), new)
        if taken is not None:
            message = f"{message}, but `{taken}` is something else here: rename that first"
            edits, safety, assumption = (), Safety.MANUAL, None
        function = self.function_of(node)
        return Finding(
            rule,
            self.index.source.path,
            *self.index.source.span(node),
            severity=severity,
            safety=safety,
            message=message,
            kernel=function.name if function else None,
            assumption=assumption,
            basis=basis,
            edits=edits,
        )
