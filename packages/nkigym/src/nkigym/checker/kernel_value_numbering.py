"""Value numbers of kernel programs: the origin of every element of every output.

Outputs are results and parameters: the values stored last are compared, and an element without a
store has to be without one in both programs.

An element of a parameter has a number of its own, and so has an uninitialised one. The program is
executed on these numbers: a copy keeps them, sums add (modulo 2^64, so their order does not
matter), products multiply, everything else mixes. -0 changes no sum; +0 does, as -0 + 0 is +0, but
not a second time: the lowest bit is for +0 as a term. Equal numbers mean equal programs up to the
order of sums, or two equal random numbers of 63 bits. Instructions whose elements are not known one
by one mix whole tiles. Shares no code with what makes programs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from neuroncore.effects import Touch
from neuroncore.enums import Engine, MemorySpace, ReduceCmd
from neuroncore.machine.core import NeuronCore
from neuroncore.program import Access, Allocate, Buffer, Call, Loop, Program, Statement
from neuroncore.program.ir.binding import machine_call, specs_of
from nki_dtypes import DType, cast, float32, int32, uint32
from nkigym.checker.element_numbers import ZERO, Numbers, added, mixed, number, places, seed
from nkigym.checker.findings import Finding, NotAllowedError

DRAWING = frozenset(["dropout", "rand2", "rand_get_state", "rand_set_state", "rng", "set_rng_seed"])
"""Instructions that continue with the state of a generator."""
IDLE = frozenset(["engine", "priority", "dge_mode", "is_stationary_onezero", "is_moving_onezero"])
"""Attributes that select the engine and the speed of an instruction, and change no value."""
INTEGERS = (int32, uint32)
UNORDERED = frozenset([
    "add", "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor",
])  # fmt: skip
"""Reductions in any order: not products, which round, nor maxima, of -0 and +0 either."""


def check_kernels(before: Program, after: Program) -> list[Finding]:
    """Every result, and every parameter as it is left, in which `after` is not what `before` is;
    nothing where all are the same.

    Every iteration is carried out: for a few tiles per loop.
    """
    root, given = _interface(before), _interface(after)
    if root != given:
        differing = (name for name in root if name in given and root[name] != given[name])
        return [Finding(None, f"its {n}: {given[n]}, not {root[n]}") for n in differing]
    try:
        expected, found = kernel_values(before), kernel_values(after)
    except NotAllowedError as wrong:
        return [Finding(None, str(wrong))]
    findings = []
    names = [*before.results, *(buffer.name for buffer in before.parameters)]
    for name, one, other in zip(names, expected, found, strict=True):
        if (differs := one != other).any():
            first = tuple(int(n) for n in np.argwhere(differs)[0])
            count = int(differs.sum())
            findings.append(Finding(None, f"{count} elements of {name} differ, first {first}"))
    return findings


def _interface(program: Program) -> dict[str, Any]:
    """What a caller depends on, by what it is called; without names of arrays."""
    made = program.buffers()
    arrays = {
        "parameter": program.parameters,
        "result": [made.get(name) for name in program.results],
    }
    found: dict[str, Any] = {"target": program.target, "NKI version": program.nki}
    for kind, buffers in arrays.items():
        found[f"number of {kind}s"] = len(buffers)
        for at, buffer in enumerate(buffers):
            shown = "undefined" if buffer is None else f"{buffer.dtype.name}{list(buffer.shape)}"
            found[f"{kind} {at}"] = shown
    return found


def kernel_values(program: Program) -> tuple[Numbers, ...]:
    """The numbers of each result, and of each parameter when all is done.

    Raises NotAllowedError for what cannot be numbered.
    """
    machine = _Machine(program)
    for n, buffer in enumerate(program.parameters):
        machine.make(buffer, seed("parameter", n))
    machine.block(program.body, {})
    shapes = program.buffers()
    names = [*program.results, *(buffer.name for buffer in program.parameters)]
    return tuple(machine.whole(name).reshape(shapes[name].shape) for name in names)


@dataclass(slots=True)
class _Machine:
    program: Program
    buffers: dict[str, Buffer] = field(default_factory=dict)
    contents: dict[str, Numbers] = field(default_factory=dict)
    summed: dict[str, Numbers] = field(default_factory=dict)
    """Of PSUM, which elements contain a sum."""
    made: int = 0

    def make(self, buffer: Buffer, start: np.uint64) -> None:
        self.buffers[buffer.name] = buffer
        self.contents[buffer.name] = mixed(np.arange(buffer.size, dtype=np.uint64), start)
        if buffer.space is MemorySpace.psum:
            self.summed[buffer.name] = np.zeros(buffer.size, np.bool_)

    def block(self, body: tuple[Statement, ...], values: Mapping[str, int]) -> None:
        for statement in body:
            match statement:
                case Loop():
                    for value in statement.values:
                        self.block(statement.body, {**values, statement.variable: value})
                        for inner in statement.body:
                            if isinstance(inner, Allocate):
                                self.contents.pop(inner.buffer.name, None)
                case Allocate(buffer):
                    self.made += 1
                    what = buffer.content if buffer.content is not None else self.made
                    self.make(buffer, seed("nothing has written", what))
                case Call():
                    take = _TAKE.get(statement.instruction, _tile)
                    take(_Carried(self, statement, values))

    def whole(self, name: str) -> Numbers:
        if name not in self.contents:
            raise NotAllowedError(f"{name} is used outside its block")
        return self.contents[name]

    def view(self, numbers: Numbers, access: Access, values: Mapping[str, int]) -> Numbers:
        if any(name not in values for name, _ in access.offset.terms):
            raise NotAllowedError(f"{access.buffer} is accessed by a variable without a loop")
        if access.indirect is not None or access.dtype is not None:
            raise NotAllowedError(f"{access.buffer} is not accessed by its elements")
        offset, size = access.offset.value(values), numbers.itemsize
        down, up = access.reach()
        if offset + down < 0 or offset + up >= numbers.size:
            raise NotAllowedError(f"an access leaves {access.buffer}")
        strides = tuple(s * size for s in access.strides)
        return as_strided(numbers[offset:], access.shape, strides)


@dataclass(slots=True)
class _Carried:
    """A call while loop variables have values."""

    machine: _Machine
    call: Call
    values: Mapping[str, int]

    def numbers(self, name: str) -> Numbers | None:
        """The numbers of an operand, one for a scalar; None for an operand that is absent."""
        value = self.call.operands.get(name)
        if value is None:
            return None
        if not isinstance(value, Access):
            return number(float(value))
        return self.machine.view(self.machine.whole(value.buffer), value, self.values)

    def needed(self, name: str) -> Numbers:
        found = self.numbers(name)
        if found is None:
            raise NotAllowedError(f"{self.call.instruction} has no {name}")
        return found

    def dtype(self, name: str) -> DType:
        value = self.call.operands[name]
        assert isinstance(value, Access)
        self.machine.whole(value.buffer)
        return self.machine.buffers[value.buffer].dtype

    def form(self, name: str, found: Numbers) -> np.uint64:
        """A number for the name, shape and dtype of an operand, which is a tile or a scalar."""
        is_tile = isinstance(self.call.operands[name], Access)
        return seed(name, found.shape, self.dtype(name).name if is_tile else None)

    def write(self, name: str, found: Numbers, rounded: bool = True) -> None:
        """Elements of dst, rounded to its dtype, except to float32."""
        target, dtype = self.needed(name), self.dtype(name)
        if rounded and dtype is not float32:
            found = mixed(found, seed("rounded", dtype.name))
        target[...] = _fitted(found, target.shape)

    def reject_unknown(self, *known: str) -> None:
        """Raise NotAllowedError for an attribute that is set and not modelled."""
        for name, attr in self.call.record.attrs.items():
            value = self.call.attrs[name]
            if name not in IDLE and name not in known and value != attr.default:
                raise NotAllowedError(f"{self.call.instruction} with {name}={value}")

    def begun(self, name: str) -> Numbers | None:
        """Of a tile in PSUM, which elements contain a sum."""
        into = self.call.operands[name]
        assert isinstance(into, Access)
        summed = self.machine.summed.get(into.buffer)
        return None if summed is None else self.machine.view(summed, into, self.values)

    @property
    def what(self) -> np.uint64:
        """The instruction and its attributes, without its engine."""
        attrs = {k: str(v) for k, v in self.call.attrs.items() if k not in IDLE}
        return seed(self.call.instruction, sorted(attrs.items()))


def _fitted(found: Numbers, shape: tuple[int, ...]) -> Numbers:
    """The same elements in a tile of this shape."""
    if found.size != int(np.prod(shape)):
        raise NotAllowedError(f"{found.size} elements do not fill a tile of {shape}")
    return found.reshape(shape)


def _copy(c: _Carried) -> None:
    c.reject_unknown("dst_rmw_op")
    source, op = c.needed("src").copy(), c.call.attrs.get("dst_rmw_op")
    if op is None:
        if c.dtype("src") in INTEGERS and c.dtype("dst") is float32:
            source = mixed(source, seed("rounded", "float32"))
        c.write("dst", source, rounded=c.dtype("src") is not c.dtype("dst"))
        return
    if op.name != "add":
        raise NotAllowedError(f"{c.call.instruction} with dst_rmw_op={op.name}")
    target = c.needed("dst")
    c.write("dst", added(target, _fitted(source, target.shape)))


def _elementwise(*operands: str) -> Callable[[_Carried], None]:
    """Each element of dst from the elements of these operands at the same place, or of its row."""

    def take(c: _Carried) -> None:
        shape = c.needed("dst").shape
        parts = [_spread(c.numbers(name), shape) for name in operands]
        _reject_registers(c)
        if c.call.instruction == "tensor_tensor" and c.call.attrs["op"].name == "add":
            total = added(*parts)
        else:
            total = mixed(c.what, *parts)
        if c.call.instruction == "tensor_tensor" and all(
            c.dtype(name) in INTEGERS for name in ("dst", *operands)
        ):  # exact on GpSimdE alone
            total = mixed(total, seed("exact", str(c.call.attrs["engine"])))
        c.write("dst", total)
        result = c.call.operands.get("reduce_res")
        if result is not None:
            c.write("reduce_res", _summed(c, total))

    return take


def _spread(found: Numbers | None, shape: tuple[int, ...]) -> Numbers:
    if found is None:
        return np.asarray(seed("absent"))
    if found.ndim == 0:
        return found
    if found.size == shape[0] and len(shape) > 1 and found.size != int(np.prod(shape)):
        return found.reshape(shape[0], *[1] * (len(shape) - 1))
    return _fitted(found, shape)


def _reject_registers(c: _Carried) -> None:
    command = c.call.attrs.get("reduce_cmd")
    if command not in (None, ReduceCmd.idle, ReduceCmd.reset_reduce):
        raise NotAllowedError(f"{c.call.instruction} goes on with a sum in registers")


def _summed(c: _Carried, elements: Numbers) -> Numbers:
    """One number per row, the same for any order of its elements where the reduction has none."""
    attrs = c.call.attrs
    op = attrs["reduce_op"] if "reduce_op" in attrs else attrs["op"]
    if op is not None and op.name not in UNORDERED:
        elements = mixed(elements, places(elements.shape[1:]))
    with np.errstate(over="ignore"):
        rows = mixed(elements).reshape(elements.shape[0], -1).sum(axis=1, dtype=np.uint64)
    return mixed(c.what, rows)


def _reduce(c: _Carried) -> None:
    data, dst = c.needed("data"), c.needed("dst")
    if dst.size != data.shape[0]:
        _tile(c)
        return
    c.write("dst", _summed(c, data))


def _transpose(c: _Carried) -> None:
    c.reject_unknown()
    data, begun = c.needed("data"), c.begun("dst")
    c.write("dst", data.reshape(data.shape[0], -1).T.copy(), rounded=False)
    if begun is not None and c.call.attrs["engine"] is not Engine.vector:
        begun[...] = True


def _matmul(c: _Carried) -> None:
    c.reject_unknown("accumulate")
    left, right = (mixed(c.needed(n)) | ZERO for n in ("stationary", "moving"))
    target, begun = c.needed("dst"), c.begun("dst")
    if begun is None or left.shape[0] != right.shape[0]:
        raise NotAllowedError("a product of these tiles does not go there")
    with np.errstate(over="ignore"):
        product = left.reshape(left.shape[0], -1).T @ right.reshape(right.shape[0], -1)
    accumulate = c.call.attrs["accumulate"]
    keep = begun if accumulate is None else np.asarray(accumulate is True)
    so_far, product = np.where(keep, target, np.uint64(0)), _fitted(product & ~ZERO, target.shape)
    c.write("dst", added(so_far, product))
    begun[...] = True


def _memset(c: _Carried) -> None:
    c.reject_unknown()
    value, dtype = c.call.operands["value"], c.dtype("dst")
    if not isinstance(value, (int, float)):
        raise NotAllowedError(f"memset of {value}")
    stored = value + 0.0 if dtype.is_integer else _rounded(float(value), dtype)
    c.write("dst", np.broadcast_to(number(stored), c.needed("dst").shape), rounded=False)


def _rounded(value: float, dtype: DType) -> float:
    """The value after rounding to a dtype."""
    return float(cast(np.asarray(value, np.float32), dtype).astype(np.float32))


def _tile(c: _Carried) -> None:
    """Each element of the outputs from all inputs: their elements in order, shapes and dtypes."""
    _reject_registers(c)
    if c.call.instruction in DRAWING:
        raise NotAllowedError(f"{c.call.instruction} takes what comes next of a random sequence")
    total = c.what
    outputs, kept = c.call.record.outputs, _kept(c)
    for name in c.call.operands:
        found = c.numbers(name)
        if found is None:
            continue
        total = mixed(total, c.form(name, found))
        if name not in outputs or name in kept:
            with np.errstate(over="ignore"):
                total = mixed(total, mixed(found, places(found.shape)).sum(dtype=np.uint64))
    for name in outputs:
        if c.numbers(name) is not None:
            c.write(name, mixed(total, seed(name), places(c.needed(name).shape)))


def _kept(c: _Carried) -> frozenset[str]:
    """The outputs of which an instruction reads, or leaves as it is, what they contain."""
    program, call = c.machine.program, c.call
    core = NeuronCore(program.target, watchers=())
    made = machine_call(call, specs_of(call, c.machine.buffers, core), core, program.nki)
    touched = [e for e in made.effects if not e.is_register]
    if any(e.touch is Touch.accumulate for e in touched):
        raise NotAllowedError(f"{call.instruction} goes on with a sum in PSUM")
    read = frozenset(e.operand for e in touched if e.touch is Touch.read)
    return read if call.record.covers(made) else read | frozenset(call.record.outputs)


_TAKE: dict[str, Callable[[_Carried], None]] = {
    **dict.fromkeys(("dma_copy", "tensor_copy"), _copy),
    "activation": _elementwise("data", "bias", "scale"),
    "reciprocal": _elementwise("data"),
    "tensor_scalar": _elementwise("data", "operand0", "operand1"),
    "tensor_tensor": _elementwise("data1", "data2"),
    "scalar_tensor_tensor": _elementwise("data", "operand0", "operand1"),
    "tensor_reduce": _reduce,
    "nc_transpose": _transpose,
    "nc_matmul": _matmul,
    "memset": _memset,
}
