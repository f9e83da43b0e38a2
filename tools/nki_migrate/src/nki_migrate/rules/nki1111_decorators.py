"""NKI1111, NKI1113–NKI1116: decorators and harness calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Edit, Finding, Safety, Severity
from nki_migrate.index import Function
from nki_migrate.rules.rule import Rule, Site

__all__ = ["RULES"]

_STEP = ("0.1", "0.2")
_HARNESS = {"nki.baremetal", "nki.benchmark", "nki.profile", "nki.trace"}


def _decorator_name(node: ast.expr, site: Site) -> str | None:
    return site.canonical(node.func if isinstance(node, ast.Call) else node)


def _check_function(node: ast.FunctionDef, site: Site) -> Iterator[Finding]:
    function = site.function_of(node)
    if function is None or function.node is not node:
        return
    for decorator in node.decorator_list:
        yield from _check_decorator(decorator, function, site)


def _check_decorator(node: ast.expr, function: Function, site: Site) -> Iterator[Finding]:
    name = _decorator_name(node, site) or ""
    if name.startswith("ncc."):
        message = "compiler decorators are gone"
        yield site.finding("NKI1114", node, message, edits=[_remove(node, site)])
    if name == "nki.jit" or name in _HARNESS:
        if function.called_from_device:
            yield _of_a_helper(node, function, site)
        elif name in _HARNESS:
            yield _harness_decorator(node, name, site)
        elif isinstance(node, ast.Call) and (node.keywords or node.args):
            yield from _check_options(node, site)


def _of_a_helper(node: ast.expr, function: Function, site: Site) -> Finding:
    if not function.host_calls:
        message = "a function that kernels call carries no `nki.jit`"
        return site.finding("NKI1111", node, message, edits=[_remove(node, site)])
    message = (
        f"`{function.name}` is called by kernels and by the host: remove the decorator"
        f" and launch it as `nki.jit({function.name})(…)`"
    )
    return site.finding("NKI1112", node, message, safety=Safety.MANUAL)


def _remove(node: ast.expr, site: Site) -> Edit:
    """The decorator's whole line, `@` included."""
    line, _, end_line, _ = site.index.source.span(node)
    return Edit(line, 1, end_line, len(site.index.source.lines[end_line - 1]) + 1, "")


def _check_options(node: ast.Call, site: Site) -> Iterator[Finding]:
    """`@nki.jit(mode="simulation", debug_kernel=True)` → `@nki.jit`."""
    values = ", ".join(site.source(k) for k in node.keywords)
    mode = next((k.value for k in node.keywords if k.arg == "mode"), None)
    word = mode.value if isinstance(mode, ast.Constant) else None
    rule = "NKI1113" if mode is not None else "NKI1115"
    message = f"options of `nki.jit` are gone: {values}"
    if word in {"simulation", "benchmark", "baremetal"}:
        message += "; to simulate call `nki.simulate(kernel)(...)` from 0.3 on"
    edits = [site.replace(node, site.source(node.func))]
    yield site.finding(rule, node, message, edits=edits)


def _harness_decorator(node: ast.expr, name: str, site: Site) -> Finding:
    message = f"`{name}` is gone"
    if name in {"nki.benchmark", "nki.profile"}:
        message += "; measure with an external profiler"
    func = node.func if isinstance(node, ast.Call) else node
    prefix = site.source(func).rpartition(".")[0] or site.index.alias_for("nki")
    if not prefix:
        return site.finding("NKI1116", node, message, safety=Safety.MANUAL)
    return site.finding("NKI1116", node, message, edits=[site.replace(node, f"{prefix}.jit")])


def _check_call(node: ast.Call, site: Site) -> Iterator[Finding]:
    """Harness calls in host code."""
    name = site.canonical(node.func)
    if name in {"nki.baremetal", "nki.benchmark", "nki.profile"} and not _is_decorator(node, site):
        yield from _check_harness_call(node, name, site)
    elif name == "nki.simulate_kernel" and node.args:
        yield _simulate(node, site)


def _is_decorator(node: ast.AST, site: Site) -> bool:
    parent = site.index.parent(node)
    return isinstance(parent, ast.FunctionDef) and node in parent.decorator_list


def _check_harness_call(node: ast.Call, name: str, site: Site) -> Iterator[Finding]:
    parent = site.index.parent(node)
    applied = isinstance(parent, ast.Call) and parent.func is node and not node.args
    target = parent.args[0] if applied and isinstance(parent, ast.Call) and parent.args else None
    kernel = target if target is not None else node.args[0] if node.args else None
    whole = parent if applied and isinstance(parent, ast.Call) else node
    if name == "nki.baremetal" and isinstance(kernel, ast.Name):
        text = _launchable(kernel, site)
        if text is None:
            message = "`nki.baremetal` is gone: decorate the kernel with `nki.jit` and call it"
            yield site.finding(
                "NKI1116", whole, message, safety=Safety.MANUAL, severity=Severity.WARNING
            )
            return
        message = "`nki.baremetal` is gone: a kernel is called directly"
        yield site.finding("NKI1116", whole, message, edits=[site.replace(whole, text)])
        return
    message = f"`{name}` is gone; measure with an external profiler"
    yield site.finding("NKI1116", node, message, safety=Safety.MANUAL, severity=Severity.WARNING)


def _launchable(kernel: ast.Name, site: Site) -> str | None:
    function = site.index.functions.get(kernel.id)
    if function is not None and function.decorated:
        return kernel.id
    nki = site.index.alias_for("nki")
    return f"{nki}.jit({kernel.id})" if nki is not None else None


def _simulate(node: ast.Call, site: Site) -> Finding:
    """`nki.simulate_kernel(k, a)` → `nki.simulate(k)(a)`, from 0.3 on."""
    message = "`nki.simulate_kernel(k, …)` is `nki.simulate(k)(…)` from 0.3 on"
    kernel, *arguments = node.args
    if site.request.target < "0.3" or isinstance(kernel, ast.Subscript | ast.Starred):
        return site.finding(
            "NKI1116", node, message, safety=Safety.MANUAL, severity=Severity.WARNING
        )
    prefix = site.source(node.func).rpartition(".")[0] or site.index.alias_for("nki")
    if prefix is None:
        return site.finding(
            "NKI1116", node, message, safety=Safety.MANUAL, severity=Severity.WARNING
        )
    rest = ", ".join(
        [*(site.source(a) for a in arguments), *(site.source(k) for k in node.keywords)]
    )
    text = f"{prefix}.simulate({site.source(kernel)})({rest})"
    return site.finding("NKI1116", node, message, edits=[site.replace(node, text)])


RULES = (
    Rule(
        id="NKI1111",
        step=_STEP,
        klass="b",
        safety=Safety.SAFE,
        title="a function that kernels call carries no `nki.jit`",
        page="""\
Old: `@nki.jit(mode="trace")` on a helper

New: no decorator

A decorator that is left raises an error about classes that inherit from `NKIObject`.
""",
        nodes=(ast.FunctionDef,),
        check=_check_function,
    ),
    Rule(
        id="NKI1112",
        step=_STEP,
        klass="b",
        safety=Safety.MANUAL,
        title="a kernel that kernels call too is launched through `nki.jit(f)`",
        page="""\
Old: `@nki.jit` on a function that both the host and a kernel call

New: no decorator, and `nki.jit(f)(x)` at the host's calls; by hand
""",
    ),
    Rule(
        id="NKI1113",
        step=_STEP,
        klass="a",
        safety=Safety.SAFE,
        title="`nki.jit(mode=…)` loses its mode",
        page="""\
Old: `@nki.jit(mode="simulation")`

New: `@nki.jit`; simulate with `nki.simulate(kernel)(…)` from 0.3 on

0.2 has no simulator, later versions refuse `mode`.
""",
    ),
    Rule(
        id="NKI1114",
        step=_STEP,
        klass="a",
        safety=Safety.SAFE,
        title="compiler decorators go",
        page="""\
Old: `@nki.compiler.skip_middle_end_transformations`

New: nothing

The passes they steered are not run on kernels any more.
""",
    ),
    Rule(
        id="NKI1115",
        step=_STEP,
        klass="a",
        safety=Safety.SAFE,
        title="other options of `nki.jit` go",
        page="""\
Old: `@nki.jit(debug_kernel=True)`

New: `@nki.jit`; the finding names the values
""",
    ),
    Rule(
        id="NKI1116",
        step=_STEP,
        klass="c",
        safety=Safety.MANUAL,
        title="`nki.baremetal`, `nki.benchmark`, `nki.profile`, `nki.simulate_kernel` are gone",
        page="""\
Old: `nki.baremetal(kernel)(x)`, `nki.simulate_kernel(kernel, x)`

New: `kernel(x)`, `nki.simulate(kernel)(x)`; benchmarks by an external profiler

Under the old namespace `baremetal` returns zeros without an error on recent SDKs, so it must
not stay.
""",
        nodes=(ast.Call,),
        check=_check_call,
    ),
)
