"""Kernels that stay as they are, and the imports that they need.

A kernel is left alone when a comment says so, or when its migration would not survive the
tool's own check. It is still NKI 0.1 then, and runs only while its names come from `neuronxcc`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from neuroncore.findings import Finding, Region, Safety, Severity
from nki_migrate.comments.todos import MARK
from nki_migrate.index import FileIndex
from nki_migrate.rules.run_rules import RunRule

Kept = Mapping[str, tuple[int, int]]  # kernel → its first and last line in the original


def kept_kernels(
    index: FileIndex, starts: Mapping[str, str], covers: Callable[[int, int], bool]
) -> dict[str, tuple[int, int]]:
    """The 0.1 kernels that `covers` (first line, last line) holds back.

    Beside imports that have moved, a kernel does not show its dialect any more; the TODO at the
    import does.
    """
    found = {}
    mixed = any(f"{MARK}{RunRule.MIXED_IMPORT}" in line for line in index.source.lines)
    for f in index.functions.values():
        first = min([f.node.lineno, *(d.lineno for d in f.node.decorator_list)])
        last = f.node.end_lineno or first
        if (mixed or starts.get(f.name) == "0.1") and covers(first, last):
            found[f.name] = (first, last)
    return found


def report(
    index: FileIndex, kept: Kept, held: Iterable[str], *, is_partial: bool
) -> Iterator[Finding]:
    """One finding for each kernel that is left as it is.

    `is_partial`: `held` are kernels of which only a part would convert.
    """
    for name in kept:
        function = index.functions[name]
        line = function.node.lineno
        if name in held and is_partial:
            rule, severity = RunRule.UNTOUCHED, Severity.ERROR
            message = f"`{name}` is left as it is: not all of it converts (--all-or-nothing)"
        elif name in held:
            rule, severity = RunRule.UNSTABLE, Severity.ERROR
            message = (
                f"`{name}` is left as it is: running again would change its migrated form"
                " (--self-check); please report it"
            )
        else:
            rule, severity = RunRule.UNTOUCHED, Severity.NOTE
            message = f"`{name}` is left as it is, as a comment requests; it is still NKI 0.1"
        column = function.node.col_offset
        place = Region(index.source.path, line, column + 1, line, column + 4)
        yield Finding(rule, message, place, severity, Safety.MANUAL, name)


_STAYING = re.compile(rf"{re.escape(MARK)}{RunRule.MIXED_IMPORT}\).* NKI 0\.1 \(([\w, ]+)\)")


def kept_before(text: str) -> tuple[str, ...]:
    """The kernels that an earlier run left alone, by its TODO at an import."""
    match = _STAYING.search(text)
    return tuple(match[1].split(", ")) if match else ()


def _bound(node: ast.Import | ast.ImportFrom) -> set[str]:
    return {(a.asname or a.name.partition(".")[0]) for a in node.names}


def _users(index: FileIndex, kept: Kept, names: set[str]) -> tuple[list[str], bool]:
    """The kept kernels that read the names, and whether anything else does."""
    inside, outside = set[str](), False
    for node in index.nodes:
        if isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load):
            around = [a.name for a in (*index.ancestors(node),) if isinstance(a, ast.FunctionDef)]
            owner = next((n for n in around if n in kept), None)
            if owner is None:
                outside = True
            else:
                inside.add(owner)
    return sorted(inside, key=lambda n: kept[n]), outside


def only_kept(index: FileIndex, kept: Kept, node: ast.Import | ast.ImportFrom) -> bool:
    """Whether an import serves nothing but kernels that stay: then it stays too."""
    inside, outside = _users(index, kept, _bound(node))
    return bool(inside) and not outside


def imports_of_both_dialects(
    index: FileIndex, kept: Kept, moved: set[str]
) -> Iterator[tuple[Finding, ast.Import | ast.ImportFrom]]:
    """Imports that moved to `nki` although a kernel that stays needs them from `neuronxcc`.

    `moved` are the names that the old file had from `neuronxcc`. An earlier run's TODO is
    the same finding: by then the import does not show where it came from.
    """
    for node in index.source.tree.body:
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        names = _bound(node) & {i.local for i in index.imports if not i.is_beta1}
        line = node.lineno
        again = line > 1 and f"{MARK}{RunRule.MIXED_IMPORT}" in index.source.lines[line - 2]
        inside, outside = _users(index, kept, names & moved if not again else names)
        if inside and outside:
            spelled = ", ".join(f"`{n}`" for n in sorted(names))
            message = (
                f"this file mixes dialects: {spelled} has to come from neuronxcc for what stays"
                f" NKI 0.1 ({', '.join(inside)}), from nki for the rest; move one of them out"
            )
            place = index.source.region(node)
            yield Finding(RunRule.MIXED_IMPORT, message, place, Severity.ERROR, Safety.MANUAL), node
