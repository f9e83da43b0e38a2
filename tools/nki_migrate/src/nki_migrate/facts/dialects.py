"""The evidence for the NKI version that a kernel is written for.

The import alone does not decide: there are 2024 files that write 0.1 under the name `nki`, and
early library kernels that call `nisa` destination-first under `neuronxcc.nki`. So the kernel's own
calls decide between 0.1 and its successors, the namespace only where the calls are silent.

Between 0.2 and 0.7 a kernel is taken for the newest version that it is still valid in: the first
later step that has something to change in it marks where it stands.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nki_migrate.index import FileIndex, Function, walk

MIXED, UNKNOWN, OUTPUT_ARGUMENTS = "mixed", "unknown", "0.1/2.20"


@dataclass(frozen=True, slots=True)
class Dialect:
    """A kernel's dialect, the reason, and the version that migration has to start from.

    `name` is a version, "0.1/2.20" (the outputs are parameters), "mixed" or "unknown"; `start` is
    None for "unknown".
    """

    name: str
    why: str
    start: str | None


@dataclass(frozen=True, slots=True)
class _Evidence:
    node: ast.AST
    text: str

    def __str__(self) -> str:
        return f"{self.text} (line {getattr(self.node, 'lineno', '?')})"


# 0.1 names without a successor.
ONLY_01 = {
    *("nl.arange", "nl.mgrid", "nl.par_dim", "nl.nc", "nl.spmd_dim", "nl.loop_reduce"),
    *("nl.all_reduce", "nl.atomic_rmw", "nl.static_cast", "nl.finfo", "nl.fp32", "nl.bfp16"),
    *("nisa.builtin_custom_op", "torch_neuronx.nki_jit", "jax_neuronx.nki_call"),
}
# 0.1 functions that already took `dst=` (NKI signatures, SDK 2.26).
_DST_IN_01 = {
    "nisa.dma_copy",
    "nisa.nc_stream_shuffle",
    "nisa.select_reduce",
    "nisa.tensor_copy_predicated",
    "nisa.tensor_scalar_cumulative",
    "nisa.tensor_copy_dynamic_dst",
}
# Calls whose value is used in every version.
_VALUES = {
    *("nisa.get_nc_version", "nisa.get_nc_sub_version", "nisa.register_alloc"),
    "nisa.scalar_load",
}
_DEVICE_LOOPS = {"nl.fori_loop", "nl.while_loop"}
# The first version of a name (NKI API stubs, SDK 2.27 – 2.32).
_FIRST = {
    "nki.typing": "0.3",
    "nki.simulate": "0.3",
    "nl.dynamic_range": "0.3",
    "nl.no_reorder": "0.3",
    "nl.is_hbm": "0.3",
    "nl.is_sbuf": "0.3",
    "nl.is_psum": "0.3",
    "nl.is_on_chip": "0.3",
    "nl.load": "0.3",
    "nl.store": "0.3",
    "nisa.activate2": "0.4",
    "nisa.get_nc_sub_version": "0.5",
    "nisa.topk": "0.6",
    "nl.fori_loop": "0.6",
    "nl.while_loop": "0.6",
    "nisa.scalar_load": "0.7",
    "nisa.scalar_store": "0.7",
    "nl.tiles": "0.7",
    "nl.blocks": "0.7",
    "nl.alloc_tiles": "0.7",
    "nl.alloc_blocks": "0.7",
    "nl.int64": "0.7",
    "nl.uint64": "0.7",
}
# Functions of nl that 0.2 and later know and that compute no tile: loops, numbers, allocation,
# slices, constants (NKI API stubs, SDK 2.27 – 2.32). Everything else of nl is 0.1's.
DEVICE_FUNCTIONS = {
    *("nl.affine_range", "nl.sequential_range", "nl.static_range", "nl.dynamic_range"),
    *("nl.fori_loop", "nl.while_loop", "nl.no_reorder", "nl.ds", "nl.ndarray"),
    *("nl.program_id", "nl.num_programs", "nl.program_ndim", "nl.device_print"),
    *("nl.shared_constant", "nl.shared_identity_matrix", "nl.identity"),
    *("nl.is_hbm", "nl.is_sbuf", "nl.is_psum", "nl.is_on_chip"),
}
_FIRST_KEYWORD = {
    ("nisa.nc_matmul", "accumulate"): "0.3",
    ("nisa.dma_copy", "priority"): "0.4",
    ("nisa.tensor_scalar_reduce", "reduce_res_negate"): "0.6",
    ("nisa.activation", "engine"): "0.7",
    ("nisa.activate2", "engine"): "0.7",
    ("nisa.topk", "sorted"): "0.7",
    ("nisa.scalar_tensor_tensor", "reduce_res"): "0.7",
}


def file_dialect(names: Iterable[str]) -> str:
    """The dialect of a file from its kernels' dialects."""
    distinct = set(names) - {UNKNOWN}
    if not distinct:
        return UNKNOWN
    return distinct.pop() if len(distinct) == 1 else MIXED


def names(root: ast.AST, index: FileIndex) -> Iterator[tuple[ast.AST, str]]:
    for node in walk(root):
        if isinstance(node, ast.Name | ast.Attribute):
            name = index.canonical(node)
            if name and name.startswith(("nl", "nisa", "nki", "torch_neuronx", "jax_neuronx")):
                yield node, name


def _calls(root: ast.AST, index: FileIndex) -> Iterator[tuple[ast.Call, str]]:
    for node in walk(root):
        if isinstance(node, ast.Call) and (name := index.canonical(node.func)):
            yield node, name


def _keywords(call: ast.Call) -> set[str]:
    return {keyword.arg for keyword in call.keywords if keyword.arg}


def marks_of_01(root: ast.AST, index: FileIndex) -> Iterator[_Evidence]:
    for node, name in names(root, index):
        if name in ONLY_01 or ".".join(name.split(".")[:2]) in ONLY_01:
            yield _Evidence(node, name)
    for call, name in _calls(root, index):
        if "mask" in _keywords(call) and name.startswith(("nl.", "nisa.")):
            yield _Evidence(call, f"{name}(mask=…)")
        elif returns_its_result(call, name, index):
            yield _Evidence(call, f"{name} returns its result")


def returns_its_result(call: ast.Call, name: str, index: FileIndex) -> bool:
    """Whether a call of `nisa` is used for its value, as only 0.1 has it."""
    is_instruction = name.startswith("nisa.") and name not in _VALUES
    return is_instruction and "dst" not in _keywords(call) and _value_is_used(call, index)


def marks_of_02(root: ast.AST, index: FileIndex) -> Iterator[_Evidence]:
    for call, name in _calls(root, index):
        if not name.startswith("nisa.") or name in _DST_IN_01:
            continue
        if "dst" in _keywords(call):
            yield _Evidence(call, f"{name}(dst=…)")
        elif call.args and not _value_is_used(call, index) and "mask" not in _keywords(call):
            yield _Evidence(call, f"{name} called for its destination")


def _value_is_used(call: ast.Call, index: FileIndex) -> bool:
    around = index.parent(call)
    return not isinstance(around, ast.Expr) and not _is_loop_body(around, index)


def _is_loop_body(node: ast.AST | None, index: FileIndex) -> bool:
    """Whether a node is the lambda that a loop of the device runs for its instructions."""
    loop = index.parent(node) if isinstance(node, ast.Lambda) else None
    loop = index.parent(loop) if isinstance(loop, ast.keyword) else loop
    return isinstance(loop, ast.Call) and index.canonical(loop.func) in _DEVICE_LOOPS


def old_namespace(root: ast.AST, index: FileIndex) -> Iterator[_Evidence]:
    for node in walk(root):
        if isinstance(node, ast.Name | ast.Attribute):
            path = index.path(node)
            if path and path.startswith("neuronxcc."):
                yield _Evidence(node, path)


def beta1(function: Function, index: FileIndex, why: str) -> Dialect:
    output = _output_parameter(function, index)
    if output is None:
        return Dialect("0.1", why, "0.1")
    return Dialect(OUTPUT_ARGUMENTS, f"writes its parameter {output} and returns nothing", "0.1")


def _output_parameter(function: Function, index: FileIndex) -> str | None:
    """The parameter that a kernel stores into when it returns nothing."""
    body = [node for node in walk(function.node) if isinstance(node, ast.Return)]
    if not function.entry or any(node.value is not None for node in body):
        return None
    for call, name in _calls(function.node, index):
        if name == "nl.store" and call.args:
            target = call.args[0]
            while isinstance(target, ast.Subscript):
                target = target.value
            if isinstance(target, ast.Name) and target.id in function.parameters:
                return target.id
    return None


def oldest_possible(root: ast.AST, index: FileIndex) -> tuple[str, str]:
    found = [
        (_FIRST[name], _Evidence(node, name)) for node, name in names(root, index) if name in _FIRST
    ]
    found += [
        (_FIRST_KEYWORD[name, keyword], _Evidence(call, f"{name}({keyword}=…)"))
        for call, name in _calls(root, index)
        for keyword in _keywords(call)
        if (name, keyword) in _FIRST_KEYWORD
    ]
    version, evidence = max(found, key=lambda pair: pair[0], default=("0.2", ""))
    return version, str(evidence)
