"""Parameters of kernels and their defaults."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator

from neuroncore.findings import Edit, Finding
from nki_migrate.index import Function, Launch
from nki_migrate.rewriting.context.mutable_parameters import is_in_out, is_output
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_MARK = re.compile(r"\b(\w+)\.(?:tensor\[\s*\w+\.mutable\s*\]|mutable_tensor)")


def _check(node: ast.FunctionDef | ast.expr, site: Site) -> Iterator[Finding]:
    """NKI1105: in/out arguments."""
    if isinstance(node, ast.FunctionDef):
        yield from _parameters(node, site)
    elif site.canonical(node) == "nki.typing.mutable_tensor":
        owner = next((a for a in site.index.ancestors(node) if isinstance(a, ast.arg)), None)
        if owner is None or not _is_plain(owner, site):
            message = "tensors that a kernel changes in place have no documented equivalent"
            yield site.manual("NKI1105", node, message)


def _is_plain(owner: ast.arg, site: Site) -> bool:
    """Whether the finding of the parameter's function speaks of this annotation."""
    around = (a for a in site.index.ancestors(owner) if isinstance(a, ast.FunctionDef))
    function = next(around, None)
    return function is not None and _replaced(function, owner, site) is not None


def _replaced(function: ast.FunctionDef, owner: ast.arg, site: Site) -> str | None:
    """The annotation without the mark; None if the parameter is not changed and returned."""
    if owner.annotation is None or not is_in_out(function, owner.arg):
        return None
    text = _MARK.sub(r"\1.tensor", site.source(owner.annotation))
    return None if "mutable" in text else text


def _parameters(function: ast.FunctionDef, site: Site) -> Iterator[Finding]:
    arguments = function.args
    for owner in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        text = _replaced(function, owner, site)
        if text is not None and owner.annotation is not None:
            message = f"`{owner.arg}` is written and returned: it needs no mark"
            edit = site.replace(owner.annotation, text)
            basis = (f"every return of `{function.name}` has `{owner.arg}`",)
            yield site.finding("NKI1105", owner.annotation, message, edits=[edit], basis=basis)


def _check_outputs(node: ast.FunctionDef, site: Site) -> Iterator[Finding]:
    """NKI1117: a kernel returns the parameters that it writes; callers assign them anew."""
    function = site.function_of(node)
    if function is None or function.node is not node or not function.entry:
        return
    written = {_written(n) for n in ast.walk(node)}
    names = [n for n in function.parameters if n in written and is_output(node, n)]
    if not names:
        return
    pad = " " * node.body[0].col_offset
    edits = [site.insert_after(node.body[-1], f"\n{pad}return {', '.join(names)}")]
    edits += _assigned_anew(function, names, site)
    message = f"a kernel returns what it writes: {', '.join(f'`{n}`' for n in names)}"
    yield site.finding("NKI1117", node, message, edits=edits)


def _written(node: ast.AST) -> str | None:
    """The name of the tensor that a DMA writes to."""
    function = node.func if isinstance(node, ast.Call) else None  # its import may follow later
    if not isinstance(function, ast.Attribute) or function.attr != "dma_copy":
        return None
    assert isinstance(node, ast.Call)
    target = next((k.value for k in node.keywords if k.arg == "dst"), None)
    while isinstance(target, ast.Subscript | ast.Attribute | ast.Call):
        target = target.func if isinstance(target, ast.Call) else target.value
    return target.id if isinstance(target, ast.Name) else None


def _assigned_anew(function: Function, names: list[str], site: Site) -> list[Edit]:
    launches = (x for x in site.index.launches if x.kernel == function.name)
    return [e for x in launches for e in _assigned(x, function.parameters, names, site)]


def _assigned(
    launch: Launch, parameters: tuple[str, ...], names: list[str], site: Site
) -> Iterator[Edit]:
    """`kernel(x, y)` as a statement is `y = kernel(x, y)`, where `y` is a name."""
    given = dict(zip(parameters, launch.arguments, strict=False))
    given |= {k.arg: k.value for k in launch.keywords if k.arg}
    passed = [given.get(name) for name in names]
    statement = site.index.parent(launch.call)
    targets = [n.id for n in passed if isinstance(n, ast.Name)]
    if isinstance(statement, ast.Expr) and len(targets) == len(names):
        yield site.insert_before(statement, f"{', '.join(targets)} = ")


_MESSAGE = "a kernel takes no keyword-only parameters; the * goes, calls by keyword still work"


def _check_keyword_only(node: ast.FunctionDef, site: Site) -> Iterator[Finding]:
    """NKI2014: `def kernel(x, *, flag=True)`: kernels have no keyword-only parameters."""
    arguments = node.args
    if site.function_of(node) is None or not arguments.kwonlyargs or arguments.vararg:
        return
    first_default = next((i for i, d in enumerate(arguments.kw_defaults) if d is not None), None)
    has_bare = any(default is None for default in arguments.kw_defaults)
    if has_bare and (arguments.defaults or first_default is not None):
        message = (
            "a keyword-only parameter without default follows one with a default;"
            " reorder the parameters manually and drop the *"
        )
        yield site.manual("NKI2014", arguments.kwonlyargs[0], message)
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


_MUTATORS = {"append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse"}


def _check_list_arguments(node: ast.FunctionDef | ast.Call, site: Site) -> Iterator[Finding]:
    """NKI2016: Lists as kernel arguments and defaults become tuples."""
    if isinstance(node, ast.FunctionDef):
        yield from _defaults(node, site)
    else:
        yield from _launch(node, site)


def _defaults(node: ast.FunctionDef, site: Site) -> Iterator[Finding]:
    function = site.function_of(node)
    if function is None or function.node is not node:
        return
    arguments = node.args
    positional = (*arguments.posonlyargs, *arguments.args)[::-1]
    pairs = [*zip(positional, arguments.defaults[::-1], strict=False)]
    pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)  # type: ignore[arg-type]
    for parameter, default in pairs:
        if isinstance(default, ast.List):
            yield _default(parameter.arg, default, node, site)


def _default(name: str, default: ast.List, node: ast.FunctionDef, site: Site) -> Finding:
    if _is_mutated(name, node):
        return site.manual(
            "NKI2016",
            default,
            f"the default of {name} must be a tuple, but the kernel changes it; "
            f"copy it inside: {name} = list({name})",
        )
    return site.finding(
        "NKI2016",
        default,
        f"the default of {name} is a list; kernel arguments are tuples",
        edits=_as_tuple(default, site),
    )


def _is_mutated(name: str, function: ast.AST) -> bool:
    return any(_mutates(node, name) for node in ast.walk(function))


def _mutates(node: ast.AST, name: str) -> bool:
    """`name.append(…)` and its kind, `name[…] = …`, `del name[…]`."""
    if isinstance(node, ast.Attribute):
        return node.attr in _MUTATORS and _is_name(node.value, name)
    is_written = isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load)
    return is_written and _is_name(node.value, name)  # type: ignore[attr-defined]


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _launch(call: ast.Call, site: Site) -> Iterator[Finding]:
    launch = next((x for x in site.index.launches if x.call is call), None)
    if launch is None:
        return
    for argument in (*launch.arguments, *(k.value for k in launch.keywords)):
        if isinstance(argument, ast.List):
            yield site.finding(
                "NKI2016",
                argument,
                f"{launch.kernel} is launched with a list; kernel arguments are tuples",
                edits=_as_tuple(argument, site),
            )


def _as_tuple(node: ast.List, site: Site) -> list[Edit]:
    """Change only the brackets: what is between them may have edits of its own."""
    line, column, end_line, end_column = site.index.source.span(node)
    closing = ",)" if len(node.elts) == 1 else ")"
    return [
        Edit(line, column, line, column + 1, "("),
        Edit(end_line, end_column - 1, end_line, end_column, closing),
    ]


HOOKS = {
    "NKI1105": Hooks(nodes=(ast.FunctionDef, ast.Attribute, ast.Name), check=_check),
    "NKI1117": Hooks(nodes=(ast.FunctionDef,), check=_check_outputs),
    "NKI2014": Hooks(nodes=(ast.FunctionDef,), check=_check_keyword_only),
    "NKI2016": Hooks(nodes=(ast.FunctionDef, ast.Call), check=_check_list_arguments),
}
