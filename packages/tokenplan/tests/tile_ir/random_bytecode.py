"""Random functions in bytecode, all accesses in one chain of tokens: views of two arrays by several
strides, numbers that are converted, limited and negative, loops that are empty in some iterations,
branches, atomic updates."""

from __future__ import annotations

import random
from contextlib import contextmanager

from packages.tokenplan.tests.tile_ir.bytecode_cases import NO_FLAGS, POINTER, WEAK, function

from tokenplan.tile_ir.bytecode import Bounded, DivBy, Type, Value
from tokenplan.tile_ir.bytecode.building import I32
from tokenplan.tile_ir.bytecode.types import DYNAMIC, TOKEN, pointer, tile

ROWS = ((16, 8), (8, 16))
STRIDES = ((16, 1), (1, 16), (4, 1), (2, 1), (2, 8), (24, 3), (5, 1), (1, 4))
NUMBERS = pointer("i32")


def random_bytecode(seed: int, carries_addresses: bool = False) -> bytes:
    """Parameters: two arrays, numbers, two loop bounds and a stride.

    carries_addresses: each loop passes on where the arrays are.
    """
    rng = random.Random(seed)
    maker = _Carrying if carries_addresses else _Maker
    scalar = tile(rng.choice(("i32", "i32", "i32", "i64")))
    return function(lambda body, *given: maker(rng, body, *given).start(),
                    POINTER, POINTER, tile(NUMBERS), scalar, scalar, I32)  # fmt: skip


class _Maker:
    kinds: tuple[Type, ...] = ()
    """Of the addresses that a loop passes on."""

    def __init__(self, rng, body, p, q, numbers, n, m, stride):
        self.rng, self.body, self.numbers, self.left = rng, body, numbers, rng.randint(3, 6)
        self.bases, self.bounds, self.stride = (p, q), (self.narrow(n), self.narrow(m)), stride

    def narrow(self, number):
        """A bound as i32, possibly with limits that the runs keep."""
        if number.type != I32:
            number = self.body.one("trunci", I32, NO_FLAGS, source=number)
        if self.rng.random() < 0.4:
            number = self.assumed(self.assumed(number, Bounded(-2, 6)), DivBy(1))
        if self.rng.random() < 0.3:
            self.body.one("trunci", tile("i8"), NO_FLAGS, source=number)
        return number

    def assumed(self, number, predicate):
        return self.body.one("assume", number.type, {"predicate": predicate}, value=number)

    def start(self):
        if self.rng.random() < 0.5:
            self.stride = self.assumed(self.stride, Bounded(1, self.rng.choice((7, 200, None))))
        self.views = [self.view() for _ in range(self.rng.choice((1, 1, 2, 3)))]
        self.nest(0, (), self.body.one("make_token", TOKEN), {"return": ()})

    def view(self):
        rng, shape, strides = self.rng, self.rng.choice(ROWS), self.rng.choice(STRIDES)
        kinds, steps = list(strides), []
        for at, stride in enumerate(strides):
            if rng.random() < 0.15:
                kinds[at] = DYNAMIC
                is_constant = rng.random() < 0.5
                steps.append(self.body.integer(stride) if is_constant else self.stride)
        sizes = [self.body.integer(shape[1])] if rng.random() < 0.3 else []
        shape = (shape[0], DYNAMIC if sizes else shape[1])
        kind = Type("tensor_view", (Type("f32"), shape, tuple(kinds), None))
        tensor = self.body.one("make_tensor_view", kind, base=rng.choice(self.bases), shape=sizes,
                               strides=steps)  # fmt: skip
        tiles, dims = tuple(rng.choice((1, 1, 2, 4)) for _ in shape), rng.choice(((0, 1), (1, 0)))
        if rng.random() < 0.3:
            moves = tuple(rng.choice((1, 2, 3)) for _ in shape)
            made = Type("strided_view", (tiles, moves, kind, dims, None))
            return self.body.one("make_strided_view", made, tensor_view=tensor)
        made = Type("partition_view", (tiles, kind, dims, None))
        return self.body.one("make_partition_view", made, tensor_view=tensor)

    def nest(self, depth, variables, token, ends):
        """Accesses, loops and branches; `ends`: operations that leave, and what they pass on."""
        for _ in range(self.rng.randint(1, 3)):
            if self.left <= 0:
                break
            if depth < 3 and self.rng.random() < (0.7, 0.4, 0.2)[depth]:
                kinds = (self.loop, self.loop, self.counted, self.branches, self.branches)
                token = self.rng.choice(kinds)(depth, variables, token, ends)
            else:
                token = self.access(variables, token)
        return token

    def inits(self) -> tuple[Value, ...]:
        return ()

    @contextmanager
    def carried(self, given):
        """What is passed to the next iteration of a loop with these arguments."""
        yield ()

    def use(self, results):
        """The results of a loop are addresses from here on."""

    def loop(self, depth, variables, token, _):
        low, high, is_unsigned = self.ends(variables, token)
        step = self.body.integer(self.rng.choice((1, 1, 2)))
        kinds, inits = (*self.kinds, TOKEN), [*self.inits(), token]
        with self.body.block((I32, *kinds)) as region:
            variable, *given, inside = region.arguments
            with self.carried(given) as passed:
                after = self.nest(depth + 1, (*variables, variable), inside, {"continue": passed})
                self.body.add("continue", (), values=[*passed, after])
        attributes = {"unsigned": True} if is_unsigned else {}
        *found, token = self.body.add("for", kinds, attributes, (region.block,), lower=low,
                                      upper=high, step=step, inits=inits)  # fmt: skip
        self.use(found)
        return token

    def counted(self, depth, variables, token, outer):
        """A `loop` of as many iterations as a number, or fewer."""
        rng, body = self.rng, self.body
        most = rng.choice((*self.bounds, body.integer(2), body.integer(3)))
        kinds, inits = (*self.kinds, TOKEN), [body.integer(0), *self.inits(), token]
        with body.block((I32, *kinds)) as region:
            count, *given, inside = region.arguments
            with self.carried(given) as passed:
                if rng.random() < 0.5:
                    inside = self.access(variables, inside)
                with body.block(()) as one:
                    body.add("yield", (), values=[])
                with body.block(()) as other:
                    body.add("break", (), values=[*passed, inside])
                self.add_if(self.compared(count, most), [one, other], ())
                after = body.one("addi", I32, NO_FLAGS, lhs=count, rhs=body.integer(1))
                ends = {"continue": (after, *passed), "break": passed}
                ends |= {"return": ()} if "return" in outer else {}
                last = self.nest(depth + 1, (*variables, count), inside, ends)
                body.add("continue", (), values=[after, *passed, last])
        *found, token = body.add("loop", kinds, {}, (region.block,), inits=inits)
        self.use(found)
        return token

    def branches(self, depth, variables, token, ends):
        """An `if`, one branch of which may end the loop or the function around it."""
        rng, body, regions = self.rng, self.body, []
        left = rng.choice((0, 1, None, None))
        condition = self.condition(variables)
        for at in range(2):
            with body.block(()) as region:
                last = token
                if rng.random() < 0.8:
                    last = self.nest(depth + 1, variables, token, ends)
                end = rng.choice([*ends]) if at == left else "yield"
                values = [] if end == "return" else [*ends.get(end, ()), last]
                body.add(end, (), values=values)
            regions.append(region)
        return self.add_if(condition, regions, (TOKEN,))[0]

    def add_if(self, condition, regions, kinds):
        blocks = tuple(region.block for region in regions)
        return self.body.add("if", kinds, {}, blocks, condition=condition)

    def condition(self, variables):
        rng, body = self.rng, self.body
        if rng.random() < 0.3:
            loaded = body.add("load_ptr_tko", (I32, TOKEN), WEAK, source=self.numbers)[0]
            return self.compared(loaded, body.integer(1))
        return self.compared(rng.choice((*variables, *self.bounds)), body.integer(rng.randrange(4)))

    def compared(self, one, other):
        attributes = {"comparison": "lt", "signedness": "signed"}
        return self.body.one("cmpi", tile("i1"), attributes, lhs=one, rhs=other)

    def ends(self, variables, token):
        """The lower and the upper bound; of unsigned numbers only where both are natural."""
        rng, integer = self.rng, self.body.integer
        kind = rng.choice(("constant", "parameter", "parameter", "before", "loaded"))
        if kind == "before" and variables:
            high = self.body.one("subi", I32, NO_FLAGS, lhs=rng.choice(variables),
                                 rhs=integer(rng.choice((0, 1, 2))))  # fmt: skip
            return integer(0), high, False
        if kind == "loaded":
            found = self.body.add("load_ptr_tko", (I32, TOKEN), WEAK, source=self.numbers)
            return integer(rng.choice((0, 1))), found[0], False
        if kind == "parameter":
            return integer(rng.choice((0, 1, -1))), rng.choice(self.bounds), False
        return integer(rng.choice((0, 0, 1))), integer(rng.randint(0, 4)), rng.random() < 0.3

    def index(self, variables):
        """A sum of variables times factors, converted and limited by what it keeps."""
        body, rng = self.body, self.rng
        found = body.integer(rng.choice((0, 0, 0, 1, 1, 2, 3, -1)))
        for variable in variables:
            if rng.random() < 0.7:
                is_usual = rng.random() < 0.9
                factors = (1, 1, 1, 2, 3) if is_usual else (-1, 2**30, -(2**31), 85)
                factor = body.integer(rng.choice(factors))
                part = body.one("muli", I32, NO_FLAGS, lhs=variable, rhs=factor)
                found = body.one(rng.choice(("addi",) * 8 + ("subi",)), I32, NO_FLAGS, lhs=found,
                                 rhs=part)  # fmt: skip
        if rng.random() < 0.1:
            kind = tile(rng.choice(("i8", "i16")))
            low = body.one("trunci", kind, NO_FLAGS, source=found)
            signedness = {"signedness": rng.choice(("signed", "unsigned"))}
            found = body.one("exti", I32, signedness, source=low)
        return self.assumed(found, Bounded(-(2**31), None)) if rng.random() < 0.1 else found

    def indices(self, variables, rank):
        found = [self.index(variables) for _ in range(rank)]
        if self.rng.random() < 0.05:
            byte = tile("i8")
            found = [self.body.one("trunci", byte, NO_FLAGS, source=at) for at in found]
        return found

    def access(self, variables, token):
        self.left -= 1
        rng, body = self.rng, self.body
        if rng.random() < 0.1:
            return self.atomic(variables, token)
        view = rng.choice(self.views)
        at, shape = self.indices(variables, 2), view.type["tile"]
        if rng.random() < 0.5:
            return body.load(view, at, token, rng.choice(("weak", "weak", "weak", "relaxed")))[1]
        return body.store(view, at, body.constant(tile("f32", *shape), 1.0), token)

    def atomic(self, variables, token):
        at = self.body.one("offset", POINTER, pointers=self.rng.choice(self.bases),
                           offsets=self.body.integer(self.rng.randrange(64)))  # fmt: skip
        order = {"order": self.rng.choice(("relaxed", "acq_rel")), "scope": "device"}
        return self.body.add("atomic_rmw_tko", (tile("f32"), TOKEN), {**order, "mode": "addf"},
                             pointers=at, value=self.body.constant(tile("f32"), 1.0),
                             token=token)[1]  # fmt: skip


class _Carrying(_Maker):
    """An iteration exchanges, advances or replaces where the two arrays are."""

    kinds = (POINTER, POINTER)

    def inits(self) -> tuple[Value, ...]:
        return self.bases

    @contextmanager
    def carried(self, given):
        before = self.bases, self.views
        self.use(given)
        one, other = given
        by = self.body.integer(self.rng.choice((1, 16, 64)))
        moved = self.body.one("offset", POINTER, pointers=one, offsets=by)
        yield self.rng.choice(
            [(other, one), (one, other), (moved, other), (other, other), (other, moved)]
        )
        self.bases, self.views = before

    def use(self, results):
        self.bases = tuple(results)
        self.views = [self.view(), self.view()]

    def nest(self, depth, variables, token, ends):
        """Addresses of a block are not used behind it."""
        before = self.bases, self.views
        token = super().nest(depth, variables, token, ends)
        self.bases, self.views = before
        return token
