"""The check itself: kernels and what they reach, looked at once, as findings."""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from neuroncore.checks.subset.call_graph import (
    Reached,
    Root,
    function_at,
    is_kernel_maker,
    kernels_from,
    kernels_of,
    reached,
)
from neuroncore.checks.subset.modules import Module, Project
from neuroncore.checks.subset.rules import RULES, Frontend, frontends_of
from neuroncore.checks.subset.runtime_names import names_seen_by
from neuroncore.checks.subset.syntax_constructs import (
    BY_FORM,
    Check,
    Hit,
    check_class,
    check_signature,
)
from neuroncore.checks.subset.traversal import Function, parameters, walk
from neuroncore.checks.subset.value_constructs import BY_INDEX, BY_LOOP, BY_VALUE, is_numpy_dtype
from neuroncore.checks.subset.value_kinds import Scope, scope_of
from neuroncore.errors import AttributeValueError, Place
from neuroncore.findings import Finding, Severity
from neuroncore.options import Options
from neuroncore.python_source import parse_python
from neuroncore.surface import VERSIONS

_DEFAULT = Options()


def check_source(
    source: str, filename: str, nki: str = "0.3", frontend: Frontend | None = None
) -> list[Finding]:
    """Constructs in a text's kernels that the compiler of a version rejects, without running it.

    Kernels are the functions that nki.jit and its like are applied to, with the functions and
    classes of the same text that they reach. `frontend`: "parser" (0.2 to 0.6, selectable in 0.7),
    "tracer" (0.7, selectable from 0.4 on) or "beta1" (0.1); None is the version's own.
    Raises AttributeValueError for a version or a frontend that does not exist.
    """
    chosen = _frontend(nki, frontend)
    if not linecache.getlines(filename):
        linecache.cache[filename] = len(source), None, source.splitlines(True), filename
    project = Project()
    try:
        module = Module(filename, parse_python(source))
    except SyntaxError as error:
        return [_unreadable(error, filename)]
    return _findings(project, kernels_of(module), chosen, nki)


def check_script(
    path: Path,
    nki: str = "0.3",
    frontend: Frontend | None = None,
    kernels: Iterable[str] | None = None,
    search_path: Sequence[Path] = (),
    options: Options | None = None,
) -> list[Finding]:
    """The same for a file, with what its kernels reach in the files that it imports.

    Files are found beside the script, in the package around it, and below `search_path`; nothing
    is imported. `kernels` are names to begin from, host functions too; None means all kernels of
    the file and of the files that it imports. `options` decide where documents disagree.
    """
    chosen = _frontend(nki, frontend or _selected(nki, options or _DEFAULT))
    file = Path(path).resolve()
    project = Project([*search_path, *_roots(file)])
    module = project.load(file)
    if module is None:
        return _why_unread(file)
    if kernels is not None:
        roots = kernels_from(project, module, kernels)
    else:
        roots = [root for part in project.closure(module) for root in kernels_of(part)]
    return _findings(project, roots, chosen, nki, options or Options())


def check_function(
    kernel: Callable[..., Any], nki: str = "0.3", frontend: Frontend | None = None
) -> list[Finding]:
    """The same for one kernel, decorated or not, and what it reaches.

    Names are resolved in the running program, so that `nl = nki.language` is known.
    Raises OSError where Python cannot find its source.
    """
    project, roots, file = _roots_of(kernel)
    if project.load(file) is None:
        return _why_unread(file)
    return _findings(project, roots, _frontend(nki, frontend), nki)


def loops_reached(kernel: Callable[..., Any], paths: Collection[str]) -> set[tuple[str, int, int]]:
    """The files, lines and columns of the calls that a kernel's `for` loops run over, of NKI's
    functions `paths` (such as nki.language.affine_range); also in what the kernel reaches.

    Raises OSError where no source is found.
    """
    project, roots, file = _roots_of(kernel)
    if project.load(file) is None:
        raise OSError(f"{file} is not Python")
    return {
        (part.module.file, node.iter.lineno, node.iter.col_offset)
        for part in reached(project, roots)
        for node in walk(part.node)
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Call)
        if part.module.nki(node.iter.func) in paths
    }


def _roots_of(kernel: Callable[..., Any]) -> tuple[Project, list[Root], Path]:
    function = inspect.unwrap(kernel)
    source = inspect.getsourcefile(function)
    if source is None or not Path(source).is_file():
        raise OSError(f"{function.__name__}: no source file")
    file = Path(source).resolve()
    project = Project(_roots(file), {file: names_seen_by(function)})
    module = project.load(file)
    roots = function_at(module, function.__code__.co_firstlineno) if module else []
    if module and not roots:
        raise OSError(f"{function.__name__}: {file} has no such function where it was defined")
    return project, roots, file


def _frontend(nki: str, frontend: Frontend | None) -> Frontend:
    if nki not in VERSIONS:
        raise AttributeValueError(
            f"NKI {nki} is unknown", expected=", ".join(VERSIONS), got=repr(nki), operand="nki"
        )
    allowed = frontends_of(nki)
    if frontend is not None and frontend not in allowed:
        raise AttributeValueError(
            f"NKI {nki} has no frontend {frontend!r}",
            expected=" or ".join(allowed), got=repr(frontend), operand="frontend",
        )  # fmt: skip
    return frontend or allowed[0]


def _selected(nki: str, options: Options) -> Frontend | None:
    """The frontend of Options.frontend, where a version has it."""
    return options.frontend if options.frontend in frontends_of(nki) else None


def _roots(file: Path) -> list[Path]:
    """Where the imports of a file are looked up: its folder, and the one that holds its package."""
    folder = file.parent
    while (folder / "__init__.py").is_file() and folder != folder.parent:
        folder = folder.parent
    return list(dict.fromkeys([file.parent, folder]))


def _why_unread(file: Path) -> list[Finding]:
    try:
        parse_python(file.read_bytes())
    except SyntaxError as error:
        return [_unreadable(error, str(file))]
    return []


def _unreadable(error: SyntaxError, file: str) -> Finding:
    place = Place(file, error.lineno or 1, max(0, (error.offset or 1) - 1))
    return _finding("syntax", place, error.msg, "error")


# -- one function after the other


def _findings(
    project: Project,
    kernels: Iterable[Root],
    frontend: Frontend,
    nki: str,
    options: Options = _DEFAULT,
) -> list[Finding]:
    """In the order of the files and lines; one per rule and place."""
    parts = reached(project, kernels)
    found: dict[tuple[str, Place], Finding] = {}
    told: set[tuple[str, str, str]] = set()
    for part in parts:
        for code, node, what in _hits(project, part, frontend, nki):
            severity = RULES[code].severity(frontend, nki, options)
            told_before = (code, part.module.file, what) in told
            if severity is not None and not (RULES[code].once and told_before):
                told.add((code, part.module.file, what))
                place = _place(part.module.file, node)
                found.setdefault((code, place), _finding(code, place, what, severity))
    files = list(dict.fromkeys(part.module.file for part in parts))
    order = sorted(found, key=lambda key: (files.index(key[1].file), key[1].line, key[1].column))
    return [found[key] for key in order]


def _finding(code: str, place: Place, what: str, severity: Any) -> Finding:
    rule = RULES[code]
    return Finding(
        "subset", rule.message.format(what=what), place,
        Severity(severity), cure=rule.hint, source=rule.source, code=code,
    )  # fmt: skip


def _place(file: str, node: ast.AST) -> Place:
    assert isinstance(node, ast.expr | ast.stmt | ast.arg | ast.keyword)
    if isinstance(node, ast.stmt) and hasattr(node, "body"):  # the head of a block, not its body
        return Place(file, node.lineno, node.col_offset)
    return Place(file, node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)


def _hits(project: Project, part: Reached, frontend: Frontend, nki: str) -> Iterator[Hit]:
    module, node = part.module, part.node
    if isinstance(node, ast.ClassDef):
        yield from check_class(node, module)
        functions = [n for n in node.body if isinstance(n, Function)]
    else:
        functions = [node]
        if isinstance(node, ast.AsyncFunctionDef):
            yield "statement", node, "async def"
    for function in functions:
        yield from check_signature(function, module)
        scope = scope_of(module, function, frontend, nki, part.is_entry)
        yield from _visit(scope)
        yield from _nested_kernels(project, scope)
    if part.is_entry:
        yield from _arguments(part)


def _visit(scope: Scope) -> Iterator[Hit]:
    checks = BY_INDEX if scope.frontend == "beta1" else _LATER
    for statement in scope.function.body:
        for node in walk(statement):
            for check in checks.get(type(node).__name__, ()):
                yield from check(node, scope)


def _nested_kernels(project: Project, scope: Scope) -> Iterator[Hit]:
    for call in walk(scope.function):
        if not isinstance(call, ast.Call) or ast.unparse(call.func) in scope.locals:
            continue
        target = project.find(scope.module, call.func)
        if target and any(is_kernel_maker(target[0], d) for d in target[1].decorator_list):
            yield "nested-kernel", call, target[1].name


_LATER: dict[str, tuple[Check, ...]] = {
    name: tuple(check for table in (BY_FORM, BY_VALUE, BY_LOOP) for check in table.get(name, ()))
    for name in {*BY_FORM, *BY_VALUE, *BY_LOOP}
}


def _arguments(kernel: Reached) -> Iterator[Hit]:
    """Arguments of a kernel: by its annotations, and by its launches in the same file."""
    module, node = kernel.module, kernel.node
    assert isinstance(node, Function)
    for parameter in parameters(node):
        if parameter.annotation is not None and _is_list_type(parameter.annotation):
            yield "list-argument", parameter, parameter.arg
    for given in _launch_arguments(module, node.name):
        if isinstance(given, ast.List | ast.ListComp):
            yield "list-argument", given, ast.unparse(given)
        elif is_numpy_dtype(module, given):
            yield "numpy-dtype", given, ast.unparse(given)


def _launch_arguments(module: Module, kernel: str) -> Iterator[ast.expr]:
    """The arguments of each call of a kernel in its file."""
    for call in ast.walk(module.tree):
        if isinstance(call, ast.Call) and _launched(call.func) == kernel:
            yield from (*call.args, *(keyword.value for keyword in call.keywords))


def _launched(node: ast.expr) -> str | None:
    """`kernel` of `kernel(…)` and `kernel[2](…)`."""
    node = node.value if isinstance(node, ast.Subscript) else node
    return node.id if isinstance(node, ast.Name) else None


def _is_list_type(annotation: ast.expr) -> bool:
    node = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return ast.unparse(node) in ("list", "List", "typing.List")
