"""Input of a span rule, and its findings and edits."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from neuroncore.findings import Edit, Finding, Safety, Severity
from nki_migrate.index import FileIndex, Function, shadowed_call
from nki_migrate.settings.request import Request


@dataclass(frozen=True, slots=True)
class Site:
    """The input of a span rule, and its edits and findings."""

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
            place=self.index.source.region(node),
            severity=severity,
            safety=safety,
            message=message,
            kernel=function.name if function else None,
            assumption=assumption,
            basis=basis,
            edits=edits,
        )

    def manual(self, rule: str, node: ast.AST, message: str) -> Finding:
        """An error that a human has to mend."""
        return self.finding(rule, node, message, safety=Safety.MANUAL)

    def warn(self, rule: str, node: ast.AST, message: str) -> Finding:
        """A warning about code that stays as it is."""
        warning = Severity.WARNING
        return self.finding(rule, node, message, severity=warning, safety=Safety.MANUAL)
