"""Kernels that report the values of their expressions: the source of the language-level channel.

Functions of files that mention nki are compiled with every expression wrapped in a call that passes
its value through and, while a kernel runs, reports it to the core's watchers. Nothing else about
the program changes: results, line numbers and tracebacks equal the plain source's.
"""

from __future__ import annotations

import ast
import runpy
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

from neuroncore.errors import Place
from neuroncore.machine.launch import RUNNING
from neuroncore.machine.observe import Evaluation
from neuroncore.python_source import parse_python

SEE = "__nki_see__"
LOOP = "__nki_loop__"
_PRELUDE = (
    f"from nki_runtime.recording.instrument import loop as {LOOP}, see_in; "
    f"{SEE} = see_in({{path!r}})"
)

_places: dict[str, list[Place]] = {}
"""Where the wrapped expressions of each instrumented file stand, by the number they report."""


def compile_instrumented(source: str | bytes, path: str) -> CodeType:
    """The module's code with expressions that report; raises SyntaxError as compile() does."""
    return compile(instrumented_tree(source, path), path, "exec", dont_inherit=True)


def instrumented_tree(source: str | bytes, path: str) -> ast.Module:
    """The module's tree with expressions that report; raises SyntaxError as ast.parse() does."""
    tree = parse_python(source, path)
    wrapper = _Wrapper(path)
    tree = wrapper.visit(tree)
    _places[path] = wrapper.places
    at = _after_futures(tree.body)
    tree.body[at:at] = ast.parse(_PRELUDE.format(path=path)).body
    return ast.fix_missing_locations(tree)


def _after_futures(body: list[ast.stmt]) -> int:
    """The first place where a statement may stand: after the docstring and __future__ imports."""
    at = 0
    for number, statement in enumerate(body):
        is_future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if is_future or (number == 0 and ast.get_docstring(ast.Module(body, [])) is not None):
            at = number + 1
    return at


_DEBUGGERS = ("breakpoint", "set_trace")


class _Wrapper(ast.NodeTransformer):
    """Wraps the loaded expressions inside function bodies, and the iterables of their loops."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.places: list[Place] = []
        self._functions = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self._functions += 1
        node.body = [self.visit(statement) for statement in node.body]
        self._functions -= 1
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """A call whose value is unused; a debugger stops in its caller, so its call stays plain."""
        called = node.value.func if isinstance(node.value, ast.Call) else None
        name = getattr(called, "id", getattr(called, "attr", ""))
        return node if name in _DEBUGGERS else self.generic_visit(node)

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        node.guard = self.visit(node.guard) if node.guard is not None else None
        node.body = [self.visit(statement) for statement in node.body]
        return node  # its pattern is not an evaluated expression

    def visit_For(self, node: ast.For) -> ast.AST:
        node = self.generic_visit(node)  # type: ignore[assignment]
        self._announce(node)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        node = super().generic_visit(node)  # type: ignore[assignment]
        self._announce(node)
        return node

    def _announce(self, node: ast.For | ast.comprehension) -> None:
        """Let the loop tell its variable and bounds."""
        if self._functions and isinstance(node.target, ast.Name):
            call = ast.Call(
                ast.Name(LOOP, ast.Load()), [ast.Constant(node.target.id), node.iter], []
            )
            node.iter = ast.copy_location(call, node.iter)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Attribute):  # the object of a method, not the method
            node.func.value = self.visit(node.func.value)
        node.args = [self.visit(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        return self._wrap(node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, (ast.JoinedStr, ast.Lambda, ast.Constant)):
            return node
        node = super().generic_visit(node)
        loaded = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        plain = not isinstance(node, (ast.Slice, ast.Starred, ast.GeneratorExp))
        return self._wrap(node) if isinstance(node, ast.expr) and loaded and plain else node

    def _wrap(self, node: ast.expr) -> ast.expr:
        if not self._functions:
            return node
        self.places.append(
            Place(self.path, node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
        )
        number = ast.Constant(len(self.places) - 1)
        call = ast.Call(ast.Name(SEE, ast.Load()), [number, node], [])
        return ast.copy_location(call, node)


def see_in(path: str) -> Callable[[int, Any], Any]:
    """The function that reports the expressions of one instrumented file."""
    places = _places[path]

    def see(number: int, value: Any) -> Any:
        launch = RUNNING.get()
        if launch is not None and launch.core.watchers:
            event = Evaluation(
                places[number], value, launch.kernel, launch.number, dict(launch.loops)
            )
            for watcher in launch.core.watchers:
                watcher.evaluated(event)
        return value

    return see


def loop(name: str, items: Iterable[Any]) -> Iterator[Any]:
    """The items, with the loop known to the running launch while its body runs."""
    launch = RUNNING.get()
    bounds = _bounds(items)
    if launch is None or bounds is None:
        yield from items
        return
    outer = launch.loops.get(name)
    launch.loops[name] = bounds
    try:
        yield from items
    finally:
        del launch.loops[name]
        if outer is not None:
            launch.loops[name] = outer


def _bounds(items: Iterable[Any]) -> tuple[int, int] | None:
    """First value and end of a range, or of a range-like object."""
    if isinstance(items, range):
        return (items.start, items.stop)
    start, stop = getattr(items, "start", None), getattr(items, "stop", None)
    return (start, stop) if isinstance(start, int) and isinstance(stop, int) else None


# -- imports --------------------------------------------------------------------------------------


class _Loader(SourceFileLoader):
    """Compiles a module instrumented; never from or into the cache of compiled files."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return compile_instrumented(self.get_data(path), path)


_OURS = {"neuroncore", "nki_beta1", "nki_beta2", "nki_dtypes", "nki_runtime"} | {
    "nki_migrate",
    "nkigen_lite",
    "nkigym",
    "nki_scope",
}
"""What runs the kernels is not recorded, wherever it is installed."""


class _Finder(MetaPathFinder):
    """Finds user modules that mention nki and gives them the instrumenting loader."""

    def find_spec(
        self, fullname: str, path: Any = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] in _OURS:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        loader = getattr(spec, "loader", None)
        if spec is None or not spec.origin or type(loader) is not SourceFileLoader:
            return None
        if "site-packages" in spec.origin or not mentions_nki(loader.get_data(spec.origin)):
            return None
        spec.loader = _Loader(fullname, spec.origin)
        return spec


def mentions_nki(source: bytes) -> bool:
    """Whether a file could hold kernels."""
    return b"nki" in source


_recording: ContextVar[bool] = ContextVar("nki_runtime.instrumented", default=False)


def compile_script(source: bytes, path: str) -> CodeType:
    """A script's code, instrumented where that is asked for."""
    if _recording.get() and mentions_nki(source):
        return compile_instrumented(source, path)
    return compile(source, path, "exec", dont_inherit=True)


@contextmanager
def instrumented() -> Iterator[None]:
    """Scripts compiled and modules imported inside the block report their expressions."""
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    token = _recording.set(True)
    vars(runpy)["compile"] = _compile_for_runpy
    try:
        yield
    finally:
        del vars(runpy)["compile"]
        _recording.reset(token)
        sys.meta_path.remove(finder)


def _compile_for_runpy(source: bytes, path: str, mode: str) -> CodeType:
    """The `compile` that runpy finds for files that a program runs by run_path."""
    return compile_script(source, path)
