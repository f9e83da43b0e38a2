"""Operations that leave a block before its end."""

from __future__ import annotations

from collections.abc import Iterator

from tokenplan.tile_ir.bytecode.module import Block, Operation

LOOPS = ("for", "loop")
LEAVES = ("continue", "break", "return")
ENDS = ("yield", *LEAVES)
"""Operations that end a block."""


def leaving(block: Block) -> Iterator[Operation]:
    """The operations that leave it, also the ones in its branches, and `return` in its loops."""
    for op in block.operations:
        if op.name in LEAVES:
            yield op
        yield from (found for region in op.regions for found in leaving(region)
                    if op.name not in LOOPS or found.name == "return")  # fmt: skip


def may_leave(op: Operation) -> bool:
    """Whether the operations behind it may not be executed."""
    return bool(op.regions) and any(True for _ in leaving(Block((), (op,))))


def is_left(block: Block) -> bool:
    """Whether its end is to leave the blocks around it."""
    return bool(block.operations) and block.operations[-1].name in LEAVES
