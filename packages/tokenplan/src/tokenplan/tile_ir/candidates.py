"""Candidates of a sweep: kernels for choices of parameters, which are equal, which promise most."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from itertools import product
from logging import getLogger
from math import prod
from traceback import extract_tb

from neuroncore.errors import InternalError, LaunchError
from tokenplan.tile_ir import bytecode, compiler
from tokenplan.tile_ir.description import Compute, Described, Repeat, Statement, Transfer, walk
from tokenplan.tile_ir.emission import emit
from tokenplan.tile_ir.kernel_builder import TileKernel
from tokenplan.tile_ir.orders import orders_of
from tokenplan.tile_ir.results import FunctionError, Funnel, SweepError
from tokenplan.tile_ir.verdicts import architecture, has_slow_load, ignored_hints

LOGGER = getLogger("tokenplan")
Parameters = Mapping[str, object]
DEFAULT_HINTS = {"allow_tma": True, "occupancy": 1, "num_cta_in_cga": 1}
"""Hints that change nothing."""
STEP_COST, SPILL_FACTOR = 300, 4
"""Of the estimate: instructions of a step beside its tile, and how much more expensive a sum of
matrix products is that its memory cannot contain."""
REGISTER_SUMS, TENSOR_MEMORY_SUMS = 2**14, 2**16
"""float32 elements: half of the registers of 128 threads, and the tensor memory (128 lanes of 512
columns; PTX ISA, Tensor Memory) of architectures 100 to 119."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A kernel for one choice of the parameters."""

    parameters: Parameters
    data: bytes = field(repr=False)
    key: str
    steps: int
    """Loads and stores that all instances execute."""
    promise: float
    """The estimate by which candidates are ordered before they are compiled: the least first."""
    is_slow: bool
    ignored: Sequence[str] = ()
    """Hints that the target does not have."""

    @property
    def shown(self) -> str:
        """Its parameters, for messages."""
        return _shown(self.parameters)


def canonical_key(module: bytecode.Module, target: str, version: str) -> str:
    """The SHA-256 of what decides the code: no names, no lines, no hints that are defaults."""
    functions = tuple(
        bytecode.Function(f"k{n}", _stripped(f.body), _hints(f.hints), f.is_kernel)
        for n, f in enumerate(module.functions)
    )
    data = bytecode.write(bytecode.Module(functions, module.version))
    return hashlib.sha256(f"{target} {version} ".encode() + data).hexdigest()


def _stripped(block: bytecode.Block) -> bytecode.Block:
    operations = []
    for op in block.operations:
        attributes = dict(op.attributes)
        if "hints" in attributes:
            attributes["hints"] = _hints(attributes["hints"])
            if not attributes["hints"]:
                del attributes["hints"]
        regions = tuple(map(_stripped, op.regions))
        operations.append(replace(op, attributes=attributes, regions=regions, place=None))
    return bytecode.Block(block.arguments, tuple(operations))


def _hints(hints: Mapping[str, Mapping[str, int | bool]]) -> dict[str, dict[str, int | bool]]:
    kept = {arch: {n: v for n, v in given.items() if DEFAULT_HINTS.get(n) != v}
            for arch, given in hints.items()}  # fmt: skip
    return {arch: given for arch, given in kept.items() if given}


def candidate(make: Callable[..., TileKernel], parameters: Parameters, target: str) -> Candidate:
    """The candidate; raises LaunchError or AssertionError for an illegal choice, and InternalError
    where the analysis fails."""
    described = _made(make, parameters).described()
    try:
        return _analysed(described, parameters, target)
    except LaunchError:
        raise
    except Exception as wrong:
        raise InternalError(f"the analysis raises {type(wrong).__name__}: {wrong}") from wrong


def _analysed(described: Described, parameters: Parameters, target: str) -> Candidate:
    orders = orders_of(described, target=target)
    module = emit(described, orders.kernel, orders.kept, target=target)
    key = canonical_key(module, target, compiler.version())
    instances = prod(size for _, size in described.grid)
    slow = has_slow_load(described, target)
    steps = instances * _steps(described.body)
    per_step = _promise(described, architecture(target))
    data, ignored = bytecode.write(module), ignored_hints(described, target)
    return Candidate(parameters, data, key, steps, steps * per_step, slow, ignored)


def _made(make: Callable[..., TileKernel], parameters: Parameters) -> TileKernel:
    """The kernel of one choice; FunctionError names the choice and the line that fails."""
    shown = _shown(parameters)
    try:
        kernel = make(**parameters)
    except (LaunchError, AssertionError):
        raise
    except Exception as wrong:
        at = extract_tb(wrong.__traceback__)[-1]
        raise FunctionError(
            f"the kernel for {shown} raises {type(wrong).__name__}: {wrong}",
            got=f"{at.filename}:{at.lineno}: {at.line}",
        ) from wrong
    if not isinstance(kernel, TileKernel):
        raise FunctionError(
            f"the function returns no kernel for {shown}", expected="TileKernel",
            got=type(kernel).__name__,
        )  # fmt: skip
    return kernel


def _shown(parameters: Parameters) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in parameters.items()) or "no parameters"


def _check_names(make: Callable[..., TileKernel], names: Iterable[str]) -> None:
    found = signature(make)
    try:
        found.bind(**dict.fromkeys(names))
    except TypeError as wrong:
        raise SweepError(
            f"--set does not fit the function: {wrong}",
            expected=", ".join(found.parameters) or None,
        ) from None


def _promise(described: Described, number: int) -> float:
    """Instructions of a step, estimated from its largest computed tile."""
    found = [n for n in walk(described.body) if isinstance(n, Compute)]
    tiles = [prod(n.result.shape) for n in found]
    sums = [size for n, size in zip(found, tiles, strict=True) if n.operation == "mma"]
    capacity = TENSOR_MEMORY_SUMS if 100 <= number < 120 else REGISTER_SUMS
    spills = max(sums, default=0) > capacity
    return STEP_COST + max(tiles, default=0) / 64 * (SPILL_FACTOR if spills else 1)


def _steps(body: Sequence[Statement]) -> int:
    return sum(
        node.trips * _steps(node.body) if isinstance(node, Repeat) else isinstance(node, Transfer)
        for node in body
    )


def candidates(
    make: Callable[..., TileKernel],
    space: Mapping[str, Sequence[object]],
    target: str,
    funnel: Funnel,
) -> Iterator[Candidate]:
    """Every legal choice of the space, in its order."""
    _check_names(make, space)
    for values in product(*space.values()):
        funnel.candidates += 1
        parameters = dict(zip(space, values, strict=True))
        try:
            found = candidate(make, parameters, target)
        except (compiler.CompilerError, FunctionError):
            raise
        except (LaunchError, AssertionError) as wrong:
            funnel.illegal += 1
            funnel.note("illegal", wrong)
            continue
        except InternalError as wrong:  # the analysis of the other candidates may not fail
            funnel.failed += 1
            funnel.note("internal error", f"{parameters}: {wrong}")
            LOGGER.error("please report this error of tokenplan", exc_info=wrong)
            continue
        for hint in found.ignored:
            funnel.note("ignored", f"the hint {hint}, which {target} does not have")
        yield found


ORDERINGS: dict[str, Callable[[list[Candidate]], list[Candidate]]] = {
    "model": lambda found: sorted(found, key=lambda c: c.promise),
    "random": lambda found: random.Random(0).sample(found, len(found)),
    "exhaustive": list,
}
"""In which order candidates are compiled: the most promising first, any, or as enumerated."""
