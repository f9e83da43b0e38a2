"""Enumerations and buffers in place of integers, strings and flags."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from neuroncore.findings import Finding
from nki_migrate.rules.arguments import is_device_call, keyword
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

# keyword → members by integer code (NKI API stubs of SDK 2.32)
_CODES = {
    "engine": ("unknown", "tensor", "scalar", "gpsimd", "dma", "vector", "sync"),
    "dge_mode": ("unknown", "swdge", "hwdge", "none"),
    "oob_mode": ("error", "skip"),
    "reduce_cmd": ("idle", "reset", "reduce", "reset_reduce", "load_reduce"),
}


def members_for_codes(rule: str, call: ast.Call, site: Site) -> Iterator[Finding]:
    """Findings of a rule for enum arguments of device calls that are given as 2 or "hwdge", or
    by a name of the module that is one of these."""
    name = site.canonical(call.func)
    instructions = site.index.alias_for("nisa")
    if name is None or not name.startswith("nisa.") or instructions is None:
        return
    if site.function_of(call) is None:
        return
    for given in call.keywords:
        value = _value(given.value, site)
        member = _member(given.arg, value)
        if member is not None:
            text = f"{instructions}.{given.arg}.{member}"
            kind = "string" if isinstance(value.value, str) else "number"  # type: ignore[attr-defined]
            said = f"{given.arg} is an enum, not a {kind}: {text}"
            yield site.finding(rule, given.value, said, edits=[site.replace(given.value, text)])


def _value(node: ast.expr, site: Site) -> ast.expr:
    """The value of an argument that is a name which the module binds to a number."""
    if isinstance(node, ast.Name) and _named_code(node.id) is None:
        return site.index.constant(node.id) or node
    return node


def _member(name: str | None, value: ast.expr) -> str | None:
    members = _CODES.get(name or "")
    if members is None or not isinstance(value, ast.Constant):
        return None
    code = value.value
    if isinstance(code, str):
        return code if code in members else None
    return members[code] if type(code) is int and 0 <= code < len(members) else None


def _named_code(name: str) -> tuple[str, int] | None:
    """The member and the code that a name such as `_DGE_MODE_NONE` names."""
    for enum, members in _CODES.items():
        for code, member in enumerate(members):
            if name.lower().endswith(f"{enum}_{member}"):
                return f"{enum}.{member}", code
    return None


def _check_codes(rule: str, node: ast.Call | ast.Assign, site: Site) -> Iterator[Finding]:
    """`engine=5`, and `DGE_MODE_NONE = 3` of a module: enums are given by member."""
    if isinstance(node, ast.Call):
        yield from members_for_codes(rule, node, site)
        return
    target, value = node.targets[0], node.value
    found = _named_code(target.id) if isinstance(target, ast.Name) else None
    is_code = isinstance(value, ast.Constant) and found is not None and value.value == found[1]
    instructions = site.index.alias_for("nisa")
    if found is None or not is_code or node not in site.index.source.tree.body or not instructions:
        return
    text = f"{instructions}.{found[0]}"
    said = f"{ast.unparse(target)} is a member of an enum, not a number: {text}"
    yield site.finding(rule, value, said, edits=[site.replace(value, text)])


_ENGINES = ("tensor", "vector", "scalar", "gpsimd", "unknown", "dma")
_ALIASES = {f"nisa.{name}_engine": f"engine.{name}" for name in _ENGINES}


def _check(node: ast.expr, site: Site) -> Iterator[Finding]:
    """NKI1189: engines and modes are members of enums."""
    if isinstance(node, ast.Call):
        yield from members_for_codes("NKI1189", node, site)
        return
    member = _ALIASES.get(site.canonical(node) or "")
    instructions = site.index.alias_for("nisa")
    if member is None or instructions is None or site.function_of(node) is None:
        return
    if isinstance(site.index.parent(node), ast.Attribute):
        return  # nisa.dma_engine.dma, as 0.3 has it
    text = f"{instructions}.{member}"
    said = f"engines are members of an enum: `{text}`"
    yield site.finding("NKI1189", node, said, edits=[site.replace(node, text)])


def _check_sendrecv(call: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI2008: `sendrecv(use_gpsimd_dma=True)` names its DMA engine."""
    given = keyword(call, "use_gpsimd_dma")
    instructions = site.index.alias_for("nisa")
    if given is None or instructions is None or not is_device_call(call, site, "nisa.sendrecv"):
        return
    engines = f"{instructions}.dma_engine"
    if isinstance(given.value, ast.Constant) and isinstance(given.value.value, bool):
        engine = f"{engines}.{'gpsimd_dma' if given.value.value else 'dma'}"
    else:
        chosen = site.source(given.value)
        engine = f"({engines}.gpsimd_dma if {chosen} else {engines}.dma)"
    yield site.finding(
        "NKI2008",
        given.value,
        "use_gpsimd_dma is now dma_engine",
        edits=[site.replace(given, f"dma_engine={engine}")],
    )


_BUFFERS = ("sbuf", "psum", "hbm", "private_hbm", "shared_hbm")


def _check_string_buffers(call: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI2013: `buffer="sbuf"`: buffers are objects of `nki.language`."""
    name = site.canonical(call.func)
    given = keyword(call, "buffer")
    language = site.index.alias_for("nl")
    if name is None or not name.startswith("nl.") or given is None or language is None:
        return
    if site.function_of(call) is None or not isinstance(given.value, ast.Constant):
        return
    if given.value.value in _BUFFERS:
        buffer = f"{language}.{given.value.value}"
        yield site.finding(
            "NKI2013",
            given.value,
            f"buffers are objects, not strings: {buffer}",
            edits=[site.replace(given.value, buffer)],
        )


def _check_engine_names(node: ast.Attribute | ast.Name, site: Site) -> Iterator[Finding]:
    """NKI2019: `nisa.dma_engine` is an enum of DMA kinds."""
    if site.canonical(node) != "nisa.dma_engine" or site.function_of(node) is None:
        return
    if isinstance(site.index.parent(node), ast.Attribute):
        return  # nisa.dma_engine.gpsimd_dma: the enum
    said = "`nisa.dma_engine` is an enum of DMA kinds now: as an engine write `nisa.engine.dma`"
    yield site.manual("NKI2019", node, said)


HOOKS = {
    "NKI1189": Hooks(nodes=(ast.Call, ast.Attribute, ast.Name), check=_check),
    "NKI2008": Hooks(nodes=(ast.Call,), check=_check_sendrecv),
    **{
        rule: Hooks(nodes=(ast.Call, ast.Assign), check=partial(_check_codes, rule))
        for rule in ("NKI2012", "NKI3010")
    },
    "NKI2013": Hooks(nodes=(ast.Call,), check=_check_string_buffers),
    "NKI2019": Hooks(nodes=(ast.Attribute, ast.Name), check=_check_engine_names),
}
