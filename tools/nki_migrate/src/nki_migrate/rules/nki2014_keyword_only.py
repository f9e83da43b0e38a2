"""`def kernel(x, *, flag=True)`: kernels have no keyword-only parameters."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator

from neuroncore.findings import Edit, Finding, Safety, Severity
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_MESSAGE = "a kernel takes no keyword-only parameters; the * goes, calls by keyword still work"


def _check(node: ast.FunctionDef, site: Site) -> Iterator[Finding]:
    arguments = node.args
    if site.function_of(node) is None or not arguments.kwonlyargs or arguments.vararg:
        return
    first_default = next((i for i, d in enumerate(arguments.kw_defaults) if d is not None), None)
    has_bare = any(default is None for default in arguments.kw_defaults)
    if has_bare and (arguments.defaults or first_default is not None):
        yield site.finding(
            "NKI2014",
            arguments.kwonlyargs[0],
            "a keyword-only parameter without default follows one with a default; "
            "reorder the parameters manually and drop the *",
            severity=Severity.ERROR,
            safety=Safety.MANUAL,
        )
        return
    edit = _star(node, site)
    if edit is not None:
        yield site.finding("NKI2014", arguments.kwonlyargs[0], _MESSAGE, edits=[edit])


def _star(node: ast.FunctionDef, site: Site) -> Edit | None:
    """The removal of the lone `*` and its comma, and of its line when it has one to itself."""
    source = site.index.source
    last = max(
        (source.span(n)[2:] for n in (*node.args.args, *node.args.defaults)),
        default=(node.lineno, 1),
    )
    line, column, _, _ = source.span(node.args.kwonlyargs[0])
    start, end = source.offset(*last), source.offset(line, column)
    found = _star_in(source.text[start:end])
    if found is None:
        return None
    begin, stop = start + found[0], start + found[1]
    return Edit(*_position(source.text, begin), *_position(source.text, stop), "")


def _star_in(text: str) -> tuple[int, int] | None:
    """Where the `*` and what follows it up to the next parameter are in a piece of a header."""
    for token in _tokens(text):
        if token.type == tokenize.OP and token.string == "*":
            lines = text.splitlines(keepends=True)
            start = sum(len(line) for line in lines[: token.start[0] - 1]) + token.start[1]
            comma = text.index(",", start) + 1
            return start, comma + len(text[comma:]) - len(text[comma:].lstrip())
    return None


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    try:
        yield from tokenize.generate_tokens(io.StringIO(text, newline="").readline)
    except (tokenize.TokenError, SyntaxError):
        return  # a piece of a header does not tokenize to its end


def _position(text: str, offset: int) -> tuple[int, int]:
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


HOOKS = Hooks(nodes=(ast.FunctionDef,), check=_check)
