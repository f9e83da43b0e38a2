"""Kinds of statements: statements of one kind may be iterations of one loop."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Set
from typing import Any

from neuroncore.program.ir.nodes import Access, Allocate, Buffer, Loop, Statement
from neuroncore.program.ir.traversal import walk
from neuroncore.source_location import Place


class StatementKinds:
    """Numbers for statements: equal ones differ in constant offsets and in the tensors they touch.

    Buffers in `pinned` are distinguished by name. `same_line`: source lines are distinguished too.
    """

    def __init__(self, buffers: Mapping[str, Buffer], pinned: Set[str], same_line: bool) -> None:
        self.buffers = buffers
        self.pinned = pinned
        self.same_line = same_line
        self._numbers: dict[Hashable, int] = {}
        self._known: dict[int, tuple[Any, int]] = {}
        """By id: a place or the attributes of a call, which many share, and its number."""
        self._tensors: dict[str, int] = {}

    def kind(self, node: Statement) -> int:
        """The number of the statement; a loop's own buffers count by their order."""
        own = {b: i for i, b in enumerate(own_buffers(node))} if isinstance(node, Loop) else {}
        key = self._look(node, own)
        return self._numbers.setdefault(key, len(self._numbers))

    def number(self, key: Hashable) -> int:
        """One number for equal keys."""
        return self._numbers.setdefault(key, len(self._numbers))

    def _look(self, node: Statement, own: dict[str, int]) -> Hashable:
        line = self._line(node.origin) if self.same_line and node.origin else None
        if isinstance(node, Loop):
            bounds = (node.variable, node.start, node.stop, node.step)
            return bounds, tuple([self._look(s, own) for s in node.body])
        if isinstance(node, Allocate):
            return line, self._tensor(node.buffer)
        known = self._known.get(id(node.attrs))
        attrs = known[1] if known else self._shared(node.attrs, tuple(node.attrs.values()))
        key: list[Hashable] = [line, node.instruction, node.name, attrs]
        for value in node.operands.values():
            if isinstance(value, Access):
                key.append(self._access(value, own))
            else:
                key.append(value if value is None else number_look(value))
        return tuple(key)

    def _line(self, place: Place) -> int:
        known = self._known.get(id(place))
        return known[1] if known else self._shared(place, (place.file, place.line, place.column))

    def _shared(self, shared: Any, content: Hashable) -> int:
        """A number for its content; the object is kept, so that its id remains its own."""
        known = self._known[id(shared)] = shared, self.number(("shared", content))
        return known[1]

    def _access(self, access: Access, own: dict[str, int]) -> Hashable:
        which: Hashable = own.get(access.buffer)
        if which is None:
            tensor = self._tensors.get(access.buffer)
            which = -1 - (self._tensor(self.buffers[access.buffer]) if tensor is None else tensor)
        moved = access.indirect
        index = moved and (moved.kind, moved.dim, moved.steps, self._access(moved.index, own))
        return which, access.offset.terms, access.shape, access.strides, access.dtype, index

    def _tensor(self, buffer: Buffer) -> int:
        known = self._tensors.get(buffer.name)
        if known is None:
            name = buffer.name if buffer.name in self.pinned else None
            key = "tensor", name, buffer.shape, buffer.dtype, buffer.space, buffer.address
            known = self._tensors[buffer.name] = self.number(key)
        return known


def number_look(value: Any) -> Hashable:
    """A key that distinguishes numbers, also by type and by the sign of a zero."""
    return type(value), value or repr(value)


def own_buffers(node: Statement) -> list[str]:
    """The buffers that are allocated in a statement, in order."""
    return [s.buffer.name for s in walk((node,)) if isinstance(s, Allocate)]
