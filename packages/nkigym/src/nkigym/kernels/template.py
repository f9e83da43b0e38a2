"""A block of which many copies are made: its variable parts are found once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from neuroncore.program import Access, Affine, Allocate, Call, Loop, Statement
from nkigym.kernels.construction import new_access, new_affine, new_call
from nkigym.kernels.tree import Body, renamed_allocation, rewritten, with_body

Values = Mapping[str, Affine]
Named = Mapping[str, str]
_Terms = tuple[tuple[str, int], ...]
_Write = Callable[[Sequence[Affine], Values, Named], Statement]


class Template:
    """Statements of which loop `variables` become expressions and `buffers` get other names.

    `written` gives what `rewritten` does, at the cost of what changes alone.
    """

    def __init__(self, body: Body, variables: Sequence[str], buffers: Collection[str]) -> None:
        self._variables, self._buffers = variables, buffers
        self._numbers: dict[Affine, int] = {}
        """Offsets that change, in the order of their numbers."""
        self._terms: dict[tuple[_Terms, ...], list[_Terms]] = {}
        """Terms of the expressions → terms of the offsets, which constants do not change."""
        self._writers = [self._writer(statement) for statement in body]
        self._factors = [(o.constant, self._factors_of(o)) for o in self._numbers]

    def written(self, values: Values, names: Named) -> Body:
        """The block with an expression for every variable and a name for every buffer."""
        offsets = self._offsets(values)
        return tuple([write(offsets, values, names) for write in self._writers])

    def _offsets(self, values: Values) -> list[Affine]:
        given = [values[name] for name in self._variables]
        key = tuple([value.terms for value in given])
        every = self._terms.get(key)
        if every is None:
            every = [offset.substitute(values).terms for offset in self._numbers]
            self._terms[key] = every
        found = []
        for (constant, factors), terms in zip(self._factors, every, strict=True):
            for value, factor in zip(given, factors, strict=True):
                constant += value.constant * factor
            found.append(new_affine(constant, terms))
        return found

    def _factors_of(self, offset: Affine) -> tuple[int, ...]:
        """How far each variable moves it."""
        terms = dict(offset.terms)
        return tuple([terms.get(name, 0) for name in self._variables])

    def _writer(self, statement: Statement) -> _Write:
        if isinstance(statement, Loop):
            return self._loop(statement)
        if isinstance(statement, Allocate):
            return self._allocation(statement)
        accesses = {n: v for n, v in statement.operands.items() if isinstance(v, Access)}
        if any(access.indirect is not None for access in accesses.values()):
            return lambda offsets, values, names: rewritten((statement,), values, names)[0]
        return self._call(statement, accesses)

    def _loop(self, loop: Loop) -> _Write:
        inner = [self._writer(statement) for statement in loop.body]

        def write(offsets: Sequence[Affine], values: Values, names: Named) -> Loop:
            return with_body(loop, tuple([each(offsets, values, names) for each in inner]))

        return write

    def _allocation(self, made: Allocate) -> _Write:
        name = made.buffer.name
        if name not in self._buffers:
            return lambda offsets, values, names: made
        return lambda offsets, values, names: renamed_allocation(made, names[name])

    def _call(self, call: Call, accesses: Mapping[str, Access]) -> _Write:
        changes = [
            (name, access, self._number(access.offset), access.buffer in self._buffers)
            for name, access in accesses.items()
        ]
        changes = [change for change in changes if change[2] is not None or change[3]]
        if not changes:
            return lambda offsets, values, names: call

        def write(offsets: Sequence[Affine], values: Values, names: Named) -> Call:
            operands = dict(call.operands)
            for name, access, number, is_renamed in changes:
                buffer = names[access.buffer] if is_renamed else access.buffer
                offset = access.offset if number is None else offsets[number]
                operands[name] = new_access(access, buffer, offset, access.strides)
            return new_call(call, operands)

        return write

    def _number(self, offset: Affine) -> int | None:
        """Of an offset that changes; None for others."""
        if any(name in self._variables for name, _ in offset.terms):
            return self._numbers.setdefault(offset, len(self._numbers))
        return None
