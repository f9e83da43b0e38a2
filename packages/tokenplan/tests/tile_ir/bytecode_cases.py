"""Small functions in bytecode, built operation by operation."""

from __future__ import annotations

import numpy as np

from tokenplan.checker import Execution
from tokenplan.tile_ir import bytecode, explain_bytecode
from tokenplan.tile_ir.bytecode import Block, Function, Module, Type
from tokenplan.tile_ir.bytecode.building import I32, BodyBuilder
from tokenplan.tile_ir.bytecode.types import TOKEN, pointer, tile

POINTER = tile(pointer("f32"))
WEAK = {"order": "weak"}
NO_FLAGS = {"overflow": "none"}


class Body(BodyBuilder):
    """A body with accesses to float32 arrays."""

    def view(self, base, shape, strides, extents, sizes=(), steps=()):
        """A partition view; sizes and steps are the operands of dynamic extents and strides."""
        kind = Type("tensor_view", (Type("f32"), shape, strides, None))
        tensor = self.one("make_tensor_view", kind, base=base, shape=sizes, strides=steps)
        order = tuple(range(len(extents)))
        made = Type("partition_view", (extents, tensor.type, order, None))
        return self.one("make_partition_view", made, tensor_view=tensor)

    def load(self, view, index, token=None, order="weak"):
        scope = {} if order == "weak" else {"scope": "device"}
        kinds = (tile("f32", *view.type["tile"]), TOKEN)
        attributes = {"order": order, **scope}
        return self.add("load_view_tko", kinds, attributes, view=view, index=index, token=token)

    def store(self, view, index, value, token=None):
        return self.one(
            "store_view_tko", TOKEN, WEAK, tile=value, view=view, index=index, token=token
        )

    def copied(self, view, source, sink, token=None):
        """Loads one tile and stores it as another, in this order; the token of the store."""
        value, loaded = self.load(view, source, token)
        return self.store(view, sink, value, loaded)

    def loop(self, trips, body, inits):
        """`body` takes the variable and the carried values, and returns the next ones."""
        ends = [self.integer(0), self.integer(trips) if isinstance(trips, int) else trips]
        step, kinds = self.integer(1), [value.type for value in inits]
        with self.block((I32, *kinds)) as region:
            self.add("continue", (), values=body(*region.arguments))
        assert region.block is not None
        return self.add("for", kinds, {}, (region.block,), lower=ends[0], upper=ends[1], step=step,
                        inits=inits)  # fmt: skip


def function(build, *parameters):
    """The bytecode of a body that `build` appends to."""
    body = Body()
    arguments = body.values(parameters)
    build(body, *arguments)
    body.add("return", ())
    made = Function("kernel", Block(arguments, tuple(body.operations)))
    return bytecode.write(Module((made,)))


def lost(data, scalars=(), num_bytes=(2**30,), block=(0, 0, 0)):
    """The orders that the checker misses in the first function."""
    (found,) = bytecode.read(data).functions
    arrays = [np.broadcast_to(np.uint8(0), (size,)) for size in num_bytes]
    return list(Execution(arrays, block, footprints_only=True).run(found, scalars).lost())


def explained(data, scalars=(), num_bytes=(2**30,), **options):
    """The report; the checker finds each order in the file, and in the file that is written."""
    text, new = explain_bytecode(data, **options)
    assert lost(data, scalars, num_bytes) == lost(new, scalars, num_bytes) == []
    return text
