"""Decorators and launches of kernels."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from neuroncore.findings import Edit, Finding, Safety, Severity
from nki_migrate.index import Function, Launch
from nki_migrate.index.launchers import ANY_MODULE, launcher_of
from nki_migrate.rules.arguments import keyword
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_HARNESS = {"nki.baremetal", "nki.benchmark", "nki.profile", "nki.trace"}


def _decorator_name(node: ast.expr, site: Site) -> str | None:
    return site.canonical(node.func if isinstance(node, ast.Call) else node)


def _check_function(node: ast.FunctionDef, site: Site) -> Iterator[Finding]:
    """NKI1111: NKI1111, NKI1113–NKI1116: decorators and harness calls."""
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
    is_launched = site.request.observed.is_launched(site.index.source.path, function.name)
    if not function.host_calls and not is_launched:
        message = "a function that kernels call carries no `nki.jit`"
        return site.finding("NKI1111", node, message, edits=[_remove(node, site)])
    message = f"`{function.name}` is called by kernels and by the host"
    if _is_divisible(function, site):
        edits = _divided(node, function, site)
        return site.finding("NKI1112", node, f"{message}: what it does is a helper", edits=edits)
    message += f": remove the decorator and launch it as `nki.jit({function.name})(…)`"
    return site.manual("NKI1112", node, message)


def _uses(name: str, site: Site) -> list[ast.Name]:
    return [n for n in site.index.nodes if isinstance(n, ast.Name) and n.id == name]


def _is_divisible(function: Function, site: Site) -> bool:
    """Whether the name is the function's alone, and in this file; its parameters are plain."""
    given, name = function.node.args, function.name
    if function.node.col_offset or given.vararg or given.kwarg or given.kwonlyargs:
        return False
    is_bound_anew = any(not isinstance(n.ctx, ast.Load) for n in _uses(name, site))
    is_bound_anew |= any(isinstance(n, ast.arg) and n.arg == name for n in site.index.nodes)
    is_taken = name in site.index.elsewhere or f"{name}_body" in site.index.source.text
    return not is_bound_anew and not is_taken


def _divided(decorator: ast.expr, function: Function, site: Site) -> list[Edit]:
    """A kernel in front that calls what was its code, as kernels do.

    Decorators above `nki.jit` are the kernel's, those below it the helper's.
    """
    node, name, source = function.node, function.name, site.index.source
    jit = site.source(decorator.func if isinstance(decorator, ast.Call) else decorator)
    given = [*node.args.posonlyargs, *node.args.args]
    first = len(given) - len(node.args.defaults)
    values = ["", *(f"={site.source(v)}" for v in node.args.defaults)]
    shown = ", ".join(p.arg + values[max(0, k - first + 1)] for k, p in enumerate(given))
    indent, end = " " * (node.body[0].col_offset), source.newline
    call = f"{indent}return {name}_body({', '.join(function.parameters)})"
    lines = [f"@{jit}", f"def {name}({shown}):", call, "", "", ""]
    column = source.lines[node.lineno - 1].index(name, len("def")) + 1
    called = [n for n in _uses(name, site) if site.function_of(n) is not None]
    return [
        replace(_remove(decorator, site), text=end.join(lines)),
        Edit(node.lineno, column, node.lineno, column + len(name), f"{name}_body"),
        *(site.replace(n, f"{name}_body") for n in called),
    ]


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
        return site.manual("NKI1116", node, message)
    return site.finding("NKI1116", node, message, edits=[site.replace(node, f"{prefix}.jit")])


def _check_call(node: ast.Call, site: Site) -> Iterator[Finding]:
    """Harness calls in host code."""
    name = site.canonical(node.func)
    if name in _HARNESS and not _is_decorator(node, site) and not _is_alias(node, site):
        yield from _check_harness_call(node, name, site)
    elif name == "nki.simulate_kernel" and node.args:
        yield _simulate(node, site)


def _is_decorator(node: ast.AST, site: Site) -> bool:
    parent = site.index.parent(node)
    return isinstance(parent, ast.FunctionDef) and node in parent.decorator_list


def _is_alias(node: ast.Call, site: Site) -> bool:
    """`timed = nki.benchmark(warmup=5)`, which `_check_alias` rewrites."""
    parent = site.index.parent(node)
    return isinstance(parent, ast.Assign) and launcher_of(node) is node.func


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
            yield site.warn("NKI1116", whole, message)
            return
        message = "`nki.baremetal` is gone: a kernel is called directly"
        yield site.finding("NKI1116", whole, message, edits=[site.replace(whole, text)])
        return
    message = f"`{name}` is gone; measure with an external profiler"
    yield site.warn("NKI1116", node, message)


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
        return site.warn("NKI1116", node, message)
    prefix = site.source(node.func).rpartition(".")[0] or site.index.alias_for("nki")
    if prefix is None:
        return site.warn("NKI1116", node, message)
    rest = ", ".join(
        [*(site.source(a) for a in arguments), *(site.source(k) for k in node.keywords)]
    )
    text = f"{prefix}.simulate({site.source(kernel)})({rest})"
    return site.finding("NKI1116", node, message, edits=[site.replace(node, text)])


def _check_alias(node: ast.Assign, site: Site) -> Iterator[Finding]:
    """`run = nki.simulate_kernel`: what has another name has to exist."""
    name = site.canonical(launcher_of(node.value)) or ""
    if site.function_of(node) is not None or name not in _HARNESS | {"nki.simulate_kernel"}:
        return
    nki = site.index.alias_for("nki")
    if nki is None or (name == "nki.simulate_kernel" and not _is_plain(node.value)):
        yield site.warn("NKI1116", node, f"`{name}` is gone")
        return
    text = f"{nki}.jit"
    if name == "nki.simulate_kernel":
        text = f"lambda kernel, *args, **kwargs: {nki}.simulate(kernel)(*args, **kwargs)"
    message = f"`{name}` is gone; another name for it is one for `{text}`"
    yield site.finding("NKI1116", node, message, edits=[site.replace(node.value, text)])


def _is_plain(value: ast.expr) -> bool:
    return isinstance(value, ast.Name | ast.Attribute)


def _check_harness(node: ast.AST, site: Site) -> Iterator[Finding]:
    """NKI1116: the harness of 0.1, called or under another name."""
    if isinstance(node, ast.Call):
        yield from _check_call(node, site)
    elif isinstance(node, ast.Assign):
        yield from _check_alias(node, site)


_RULE_OF = {"platform_target": "NKI2017", "mode": "NKI2018"}


def _without(name: str, said: str, call: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI2017: `nki.jit(platform_target=…)` and `nki.jit(mode=…)`: options that went away."""
    if site.canonical(call.func) != "nki.jit" or keyword(call, name) is None:
        return
    # Both options may be there at once: their findings share one edit, of what is selected.
    gone = [n for n, rule in _RULE_OF.items() if keyword(call, n) and site.request.selects(rule)]
    is_last = len(call.keywords) == len(gone) and not call.args
    edit = (
        site.replace(call, site.source(call.func)) if is_last else site.without_keyword(call, *gone)
    )
    yield site.finding(_RULE_OF[name], call, said, edits=[edit])


_PLATFORM = (
    "nki.jit has no platform_target; choose the device with the environment variable "
    "NEURON_PLATFORM_TARGET_OVERRIDE"
)
_MODE = "nki.jit has no mode; it finds the framework by itself"


def _check(call: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI2035: Kernels of 0.2 and of 0.3 do not work in one model."""
    foreign = next((x for x in site.index.foreign_launches if x.call is call), None)
    if foreign is not None and site.index.functions and foreign.kernel[0] != ANY_MODULE:
        said = f"`{foreign.kernel}` has to move to 0.3 with the kernels of this file"
        yield site.finding("NKI2035", call, said, severity=Severity.NOTE, safety=Safety.MANUAL)


def _check_programs(call: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI1118: `nl.spmd_dim(n, nl.nc(2))` in host code is a number of programs."""
    name = site.canonical(call.func)
    if name not in {"nl.spmd_dim", "nl.nc"} or site.function_of(call) is not None:
        return
    up = site.index.parent(call)
    if site.canonical(getattr(up, "func", None)) == "nl.spmd_dim":
        return  # part of what is replaced
    text = _programs(call, site)
    if text is not None:
        said = f"`{name}` is gone: a grid has `{text}` programs"
        edits = [site.replace(call, f"({text})" if isinstance(up, ast.BinOp) else text)]
        yield site.finding("NKI1118", call, said, edits=edits)


def _programs(node: ast.expr, site: Site) -> str | None:
    """The number of programs of a dimension of a grid; None where its parts are not positional."""
    name = site.canonical(node.func) if isinstance(node, ast.Call) else None
    if not isinstance(node, ast.Call) or name not in {"nl.spmd_dim", "nl.nc"}:
        return _factor(node, site)
    factors = [_programs(a, site) for a in node.args]
    count = 2 if name == "nl.spmd_dim" else 1
    if node.keywords or len(factors) != count or None in factors:
        return None
    return " * ".join(f for f in factors if f is not None)


def _factor(node: ast.expr, site: Site) -> str:
    text = site.source(node)
    is_one = isinstance(node, ast.Name | ast.Constant | ast.Attribute | ast.Subscript | ast.Call)
    return text if is_one else f"({text})"


_CORES = (1, 2)  # logical cores of one launch on current devices (NKI migration guide)


def _check_cores(call: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI4003: The bracket of a launch is the number of cores."""
    launch = next((x for x in site.index.launches if x.call is call), None)
    if launch is None or not launch.grid:
        return
    sizes = [s.value if isinstance(s, ast.Constant) else None for s in launch.grid]
    if len(sizes) > 1 or (sizes[0] is not None and sizes[0] not in _CORES):
        said = "a grid that is not the number of cores (1 or 2) becomes an error"
        yield site.warn("NKI4003", call, said)


_FRAMEWORKS = ("torch_neuronx", "torch_xla", "neuronx_distributed", "jax", "jax_neuronx")


def _check_degree(call: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI6012: the degree of a kernel in a model is the compiler's."""
    launch = next((x for x in site.index.launches if x.call is call), None)
    roots = {i.path.partition(".")[0] for i in site.index.imports}
    if launch is None or not roots & {*_FRAMEWORKS} or _cores(launch) not in (None, 1):
        return
    said = (
        f"`{launch.kernel}` is compiled for one core unless NEURON_LOGICAL_NC_CONFIG is 2, and a "
        "model for two on Trn2 and later: the degrees have to agree (error NCC_EVRF066)"
    )
    yield site.finding("NKI6012", call, said, severity=Severity.NOTE, safety=Safety.MANUAL)


def _cores(launch: Launch) -> object:
    """The number in the bracket; None without one."""
    first = launch.grid[0] if len(launch.grid) == 1 else None
    return first.value if isinstance(first, ast.Constant) else None if not launch.grid else -1


def _check_bracket(call: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI6013: the bracket of a launch is being deprecated."""
    launch = next((x for x in site.index.launches if x.call is call), None)
    if launch is not None and _cores(launch) in _CORES:
        said = "the number of cores comes from NEURON_LOGICAL_NC_CONFIG; the bracket has to agree"
        yield site.finding("NKI6013", call, said, severity=Severity.NOTE, safety=Safety.MANUAL)


HOOKS = {
    "NKI1111": Hooks(nodes=(ast.FunctionDef,), check=_check_function),
    "NKI1116": Hooks(nodes=(ast.Call, ast.Assign), check=_check_harness),
    "NKI2017": Hooks(
        nodes=(ast.Call,),
        check=lambda call, site: _without("platform_target", _PLATFORM, call, site),
    ),
    "NKI2018": Hooks(
        nodes=(ast.Call,), check=lambda call, site: _without("mode", _MODE, call, site)
    ),
    "NKI1118": Hooks(nodes=(ast.Call,), check=_check_programs),
    "NKI2035": Hooks(nodes=(ast.Call,), check=_check),
    "NKI4003": Hooks(nodes=(ast.Call,), check=_check_cores),
    "NKI6012": Hooks(nodes=(ast.Call,), check=_check_degree),
    "NKI6013": Hooks(nodes=(ast.Call,), check=_check_bracket),
}
