"""The bytes of each access of a function, enumerated in plain Python: what the checker and the
analysis are compared with."""

from __future__ import annotations

import operator
from itertools import count, product

from tokenplan.tile_ir.bytecode.types import DYNAMIC

MOST_OPERATIONS = 3_000
_BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}
_CALCULATIONS = {"addi": operator.add, "subi": operator.sub, "muli": operator.mul}


class TooLongError(Exception):
    """The function has too many operations in this execution."""


class Enumeration:
    """`accesses`: is it a store, the memory order, the bytes, and the accesses before it by tokens.

    loaded: the number that each access in turn would load.
    """

    def __init__(self, function, scalars, loaded):
        self.values, self.accesses, self.loaded, self.steps = {}, [], loaded, 0
        numbers, arrays = iter(scalars), count()
        for value in function.body.arguments:
            is_pointer = value.type["element"].kind == "ptr"
            self.values[value] = (next(arrays), 0) if is_pointer else next(numbers)
        self.block(function.body)

    def block(self, block):
        """What ends the block, and the values that it passes on."""
        for op in block.operations:
            self.steps += 1
            if self.steps > MOST_OPERATIONS:
                raise TooLongError
            given = {name: [self.values[v] for v in values] for name, values in op.operands.items()}
            if op.name in ("yield", "continue", "break", "return"):
                return op.name, given["values"]
            if op.regions:
                end, found = EXECUTED[op.name](self, op, given)
                if end != "yield":
                    return end, found
            else:
                found = self.calculated(op, given)
            self.values.update(zip(op.results, found, strict=True))
        raise AssertionError("a block without an end")

    def execute_if(self, op, given):
        return self.block(op.regions[0 if given["condition"][0] else 1])

    def execute_for(self, op, given):
        (low,), (high,), (step,) = (given[name] for name in ("lower", "upper", "step"))
        bits, (body,), carried = _bits(op.operand("lower")), op.regions, given["inits"]
        if op.attributes.get("unsigned"):
            low, high = low % 2**bits, high % 2**bits
        for at in range(low, high, step):
            arguments = [_signed(at, bits), *carried]
            self.values.update(zip(body.arguments, arguments, strict=True))
            end, carried = self.block(body)
            if end == "return":
                return end, carried
        return "yield", carried

    def execute_loop(self, op, given):
        (body,), carried, end = op.regions, given["inits"], "continue"
        while end == "continue":
            self.values.update(zip(body.arguments, carried, strict=True))
            end, carried = self.block(body)
        return "yield" if end == "break" else end, carried

    def calculated(self, op, given):
        name, (*_, result) = op.name, op.results
        if name == "constant":
            kind = op.results[0].type["element"].kind
            is_number = kind in _BITS and not op.results[0].type["shape"]
            data = int.from_bytes(op.attributes["value"], "little")
            return [_signed(data, _BITS[kind]) if is_number else None]
        if name in _CALCULATIONS:
            found = _CALCULATIONS[name](*given["lhs"], *given["rhs"])
            return [_signed(found, _bits(result))]
        if name in ("trunci", "exti", "assume"):
            ((number,),), (source,) = given.values(), op.inputs
            if op.attributes.get("signedness") == "unsigned":
                number %= 2 ** _bits(source)
            return [_signed(number, _bits(result))]
        return EXECUTED[name](self, op, given)

    def cmpi(self, op, given):
        return [getattr(operator, op.attributes["comparison"])(*given["lhs"], *given["rhs"])]

    def make_token(self, op, given):
        return [frozenset()]

    def join_tokens(self, op, given):
        return [frozenset().union(*given["tokens"])]

    def offset(self, op, given):
        (array, at), (by,) = *given["pointers"], given["offsets"]
        return [(array, at + by)]

    def make_tensor_view(self, op, given):
        kind, sizes = op.results[0].type, []
        for name in ("shape", "strides"):
            numbers = iter(zip(given[name], op.operands[name], strict=True))
            sizes.append([_natural(*next(numbers)) if n == DYNAMIC else n for n in kind[name]])
        return [(*given["base"][0], *sizes)]

    def make_partition_view(self, op, given):
        return given["tensor_view"]

    def elements(self, op, given):
        """Where the elements of a tile are that are inside of the view."""
        kind, (array, base, shape, strides) = op.operand("view").type, given["view"][0]
        steps = kind["traversal"] if kind.kind == "strided_view" else kind["tile"]
        axes = []
        starts = map(_natural, given["index"], op.operands["index"])
        for at, step, tile, dim in zip(starts, steps, kind["tile"], kind["dim_map"], strict=True):
            first = at * step
            end = min(first + tile, shape[dim])
            axes.append([at * strides[dim] for at in range(first, end)])
        return {(array, (base + sum(found)) % 2**62) for found in product(*axes)}

    def access(self, op, given, elements):
        before = given["token"][0] if given.get("token") else frozenset()
        number = len(self.accesses)
        is_store = not op.name.startswith("load")
        self.accesses.append((is_store, op.attributes["order"], elements, before))
        token = before | {number}
        return [token] if len(op.results) == 1 else [self.loaded[number % len(self.loaded)], token]

    def load_view_tko(self, op, given):
        return self.access(op, given, self.elements(op, given))

    def load_ptr_tko(self, op, given):
        return self.access(op, given, {given["source"][0]})

    def atomic_rmw_tko(self, op, given):
        return self.access(op, given, {given["pointers"][0]})

    def lost(self, may_alias=()):
        """Every two accesses whose order matters and that no token orders."""
        shared = {frozenset(pair) for pair in may_alias}
        for late, (stores, order, elements, before) in enumerate(self.accesses):
            for early, (stored, earlier, others, _) in enumerate(self.accesses[:late]):
                is_weak = not (stores or stored) and order == earlier == "weak"
                pairs = {frozenset((a, b)) for a, _ in elements for b, _ in others} & shared
                is_fence = earlier in ("acquire", "acq_rel") or order in ("release", "acq_rel")
                overlap = not is_weak and (pairs or elements & others)
                if (is_fence or overlap) and early not in before:
                    yield early, late


EXECUTED = {
    "if": Enumeration.execute_if, "for": Enumeration.execute_for, "loop": Enumeration.execute_loop,
    "cmpi": Enumeration.cmpi, "make_token": Enumeration.make_token,
    "join_tokens": Enumeration.join_tokens, "offset": Enumeration.offset,
    "make_tensor_view": Enumeration.make_tensor_view,
    "make_partition_view": Enumeration.make_partition_view,
    "make_strided_view": Enumeration.make_partition_view,
    "load_view_tko": Enumeration.load_view_tko, "store_view_tko": Enumeration.load_view_tko,
    "load_ptr_tko": Enumeration.load_ptr_tko, "atomic_rmw_tko": Enumeration.atomic_rmw_tko,
}  # fmt: skip


def _bits(value):
    return _BITS[value.type["element"].kind]


def _signed(number, bits):
    number %= 2**bits
    return number - 2**bits if bits > 1 and number >= 2 ** (bits - 1) else number


def _natural(number, value):
    return number % 2 ** _bits(value)
