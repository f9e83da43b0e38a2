"""The state of rewriting one function: scope, emitted lines, findings, what a pass saw."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from neuroncore.findings import Edit, Finding, Safety, Severity
from nki_migrate.comments.todos import has_open_mark
from nki_migrate.facts.dtypes import DType
from nki_migrate.facts.observed import FileFacts, Observation
from nki_migrate.facts.symbols import Facts, Poly
from nki_migrate.facts.values import Mask, Parameter, Storage, Sym, Tensor, Value
from nki_migrate.index import FileIndex, Function, walk
from nki_migrate.rewriting.context.call_site import Handlers, RuleTable
from nki_migrate.rewriting.context.line_breaks import WIDTH, call_text, fitted
from nki_migrate.rewriting.context.reasons import Cannot, Cause, Deselected, Reason, Unproved
from nki_migrate.rewriting.context.scope import LocalTile, Scope, Seen, assigned_name, identifiers
from nki_migrate.rewriting.plan.changes import Change
from nki_migrate.settings.request import Assumption, Request


@dataclass(frozen=True, slots=True)
class Helper:
    """A device function that is called: its file and name, and what is known of it."""

    place: tuple[str, str]
    parameters: tuple[str, ...]
    returned: Value | None = None


@dataclass(frozen=True, slots=True)
class Inputs:
    """A function to rewrite from 0.1 to 0.2, and what is known about it.

    `observed` is what runs of the file showed; `is_mixed`: the function has code of 0.1 and of
    later versions; `helpers`: functions of the file by
    name, functions of other files by import path.
    """

    index: FileIndex
    function: Function
    request: Request
    rules: RuleTable
    silenced: Callable[[str, int], bool] = lambda rule, line: False
    observed: FileFacts | None = None
    is_mixed: bool = False
    helpers: Mapping[str, Helper] = field(default_factory=dict)


class Context:
    """The state of one pass over a function."""

    def __init__(self, inputs: Inputs, handlers: Handlers, seen: Seen, final: bool) -> None:
        self.index, self.function, self.request = inputs.index, inputs.function, inputs.request
        self.handlers, self.rules = handlers, inputs.rules
        self.silenced, self.observed = inputs.silenced, inputs.observed
        self.is_mixed, self.helpers = inputs.is_mixed, inputs.helpers
        self.same_dtypes: set[frozenset[str]] = set()  # keys of dtypes asserted to be equal
        self.kept: set[ast.Call] = set()  # allocations that stay as written
        self.before, self.seen, self.final = seen, Seen(), final
        node = self.function.node
        lines = self.index.source.lines
        self.is_again = has_open_mark(lines, node.lineno, node.end_lineno or 0)
        self.facts = Facts()
        self.scope = Scope()
        self.changes: dict[ast.stmt, Change] = {}
        self.findings: list[Finding] = []
        self.marks: list[str] = []  # TODOs of the current statement
        self.out: list[str] = []
        self.rewrites: dict[ast.AST, str] = {}
        self.loops: tuple[int, ...] = ()
        self.counts: list[dict[tuple[Poly, Poly], Sym]] = [{}]
        self.statement: ast.stmt | None = None
        self.left: list[ast.stmt] = []  # statements that did not convert
        self.removable: dict[ast.stmt, set[str]] = {}
        self.reread: dict[int, Storage] = {}  # site of a load that is left out → its tile
        self.program_ids: dict[int, Sym] = {}
        self.program_counts: dict[int, Sym] = {}
        self.unknown_programs: dict[str, tuple[int, ast.Call]] = {}  # atom → axis, and its call
        self.generated: set[str] = set()
        self.temporaries: set[str] = set()  # generated names of tiles, never bound again
        self.basis: list[str] = []
        self.witness = "observed"  # the source of sizes and dtypes that were seen
        self.sizes: dict[str, Mapping[int, tuple[int, ...]]] = {}  # atom → what it was, per run
        self.numbers: dict[str, set[int]] = {}  # atom → all that it was
        self.alike: dict[str, Poly] = {}  # atom of a helper → what it is equal to in every call
        self.passed_dtypes: dict[str, tuple[str, ...]] = {}  # `x.dtype` → keys, one per call
        self.kinds: dict[str, type] = {}  # atom of a parameter → int or float, as observed
        self.seen_dtypes: dict[str, Mapping[int, str]] = {}  # `x.dtype` → what it was, per run
        self.lists: frozenset[str] | None = None  # of tiles; found when it is needed
        self.addresses: set[str] = set()  # variables that counted addresses of tiles
        self.guards: list[set[str]] = [set()]  # asserts written, per block
        self.local: dict[ast.stmt, list[LocalTile]] = {}  # head of a region → tiles made there
        self.made: dict[int, ast.stmt] = {}  # site of a filled tile → the statement it is made at
        self.sure_loops: set[int] = set()  # loops that are taken to have an iteration
        self.functions: set[int] = set()  # functions inside this one, as they are in `loops`
        self.aliased: set[int] = set()
        self.maybe_empty: set[str] = set()  # element counts that may be zero or less
        self._first: dict[str, int] = {}
        self.likes: dict[str, str] = {}  # `x.shape` → the word of its shape
        self.likes_made = 0
        self.masks: dict[ast.expr, Mask] = {}  # `mask=` → what of it the call has to respect
        self.integers: dict[ast.AST, Tensor] = {}  # access → its numbers, copied to int32
        self._atoms = 0
        self._names = {n.id for n in walk(node) if isinstance(n, ast.Name)}
        self._names |= set(self.function.parameters)
        self._pending: list[Finding] = []

    def value_of(self, node: ast.expr) -> Value:
        """The value of an expression. A call that makes a tile is rewritten on the way."""
        return self.handlers.evaluate(self, node)

    def rewrite_body(self, body: list[ast.stmt]) -> None:
        """Rewrite the statements of a block in order."""
        self.handlers.rewrite_body(self, body)

    def seen_at(self, node: ast.AST) -> Observation | None:
        """The observation of a node in the runs."""
        if self.observed is None:
            return None
        return self.observed.at(self.index.source.span(node))

    # -- names and spelling

    def alias(self, module: str) -> str:
        """How the file writes `nl` or `nisa` (an import is added where it is missing)."""
        return self.index.alias_for(module) or module  # an import is added for the bare name

    def fresh_name(self, wish: str) -> str:
        """A name like `wish`, which may be an expression, that nothing in the function uses."""
        wish = re.sub(r"\W+", "_", wish).strip("_")
        owner = assigned_name(self.statement)
        if wish in self._names | self.generated and owner and not wish.startswith(owner):
            wish = f"{owner}_{wish}"  # what it is for, before a number
        name, n = wish, 2
        while name in self._names or name in self.generated:
            name, n = f"{wish}_{n}", n + 1
        self.generated.add(name)
        return name

    def dtype(self, text: str, key: str | None = None) -> DType:
        """A dtype known only at run time; the same words over a rebound name are another one."""
        names = self.mentioned(text)
        if key is None:
            again = sorted((n, v) for n, v in names if self._first.setdefault(n, v) != v)
            key = text + "".join(f"@{n}{v}" for n, v in again)
        return DType(text, key, names)

    def dtype_text(self, dtype: DType) -> str:
        """The dtype in words valid here."""
        if self.still_valid(dtype.names):
            return dtype.text
        for name, what in self.scope.held.items():
            if isinstance(what, Storage) and what.dtype is not None and what.dtype.key == dtype.key:
                return f"{name}.dtype"
        raise Cannot(Reason.RETURNED_VALUE, f"`{dtype.text}` means something else by now")

    def still_valid(self, names: frozenset[tuple[str, int]]) -> bool:
        """Whether (name, version) pairs are still what the names mean."""
        return all(self.scope.versions.get(n, 0) == v for n, v in names)

    def mentioned(self, text: str) -> frozenset[tuple[str, int]]:
        """The variables in a text, each with its version here."""
        versions = self.scope.versions
        return frozenset((n, versions[n]) for n in identifiers(text) if n in versions)

    def atom(self, hint: str) -> str:
        """A new atom."""
        self._atoms += 1
        return f"{hint}#{self._atoms}"

    def named(self, name: str, poly: Poly, *, is_float: bool = False) -> Sym:
        """A number that a variable holds."""
        version = self.scope.versions.get(name, 0)
        return Sym(poly, name, is_float=is_float, names=frozenset({(name, version)}))

    def spell(self, sym: Sym, level: int = 0) -> str:
        """The number in words valid here; a variable that holds it is preferred."""
        sym = self.respelled(sym)
        return sym.at(level)

    def respelled(self, sym: Sym) -> Sym:
        """The same number in a spelling valid at this point. Raises Cannot if there is none."""
        valid = self.still_valid(sym.names)
        if valid and (sym.poly.constant is not None or sym.text.isidentifier()):
            return sym
        for name, value in self.scope.values.items():
            if name != "_" and _is_number(value, sym.poly):
                return self.named(name, sym.poly)
        if valid:
            return sym
        for name, value in self.scope.values.items():
            if _is_parameter(value, sym.poly):  # another name of the same parameter
                return self.named(name, sym.poly)
        if sym.poly.constant is not None:
            return Sym.number(sym.poly.constant)
        if (size := self._size_of_a_tile(sym.poly)) is not None:
            return size
        raise Cannot(
            Reason.OFFSET_INDEX, f"`{sym.text}` is rebound between its definition and this use"
        )

    def _size_of_a_tile(self, poly: Poly) -> Sym | None:
        """A number that is one of the sizes of a tile that a name holds."""
        for name, what in self.scope.held.items():
            tile = what if isinstance(what, Storage) else what.storage
            if tile.blocks or (isinstance(what, Tensor) and what.dims is not None):
                continue
            for k, size in enumerate(what.shape or ()):
                if size.poly == poly and not size.is_float:
                    names = frozenset({(name, self.scope.versions[name])})
                    return Sym(poly, f"{name}.shape[{k}]", names=names)
        return None

    def shape_text(self, shape: tuple[Sym, ...]) -> str:
        """A shape as a tuple: "(128, cols)"; `x.shape` where dimensions have no names."""
        parts = [self.spell(s) for s in shape]
        owner = next((m for p in parts if (m := re.fullmatch(r"(\w+)\.shape\[\d+\]", p))), None)
        if owner:  # a size without a name of its own: maybe the whole shape has one
            whole = self.scope.values.get(owner[1])
            expected = [Poly.atom(f"{owner[1]}.shape[{i}]") for i in range(len(parts))]
            if [s.poly for s in shape] == expected and self._rank_of(whole) == len(parts):
                return f"{owner[1]}.shape"
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"

    def _rank_of(self, value: Value | None) -> int | None:
        if isinstance(value, Parameter):
            return self.before.ranks.get(value.name)
        if isinstance(value, Tensor) and value.shape is not None and value.dims is None:
            return len(value.shape)
        return None

    def assumption(self, name: str) -> Assumption | None:
        """The user's assumption about a parameter; the kernel's own name beats `*`."""
        found = [
            a
            for a in self.request.assumptions
            if a.argument == name and a.kernel in {"*", self.function.name}
        ]
        return min(found, key=lambda a: a.kernel == "*", default=None)

    # -- emission

    @property
    def width(self) -> int:
        """Columns left for a statement at the current place."""
        column = getattr(self.statement, "col_offset", 0)
        return WIDTH - column

    def emit(self, line: str, depth: int = 0) -> None:
        """A new statement in front of (or instead of) the current one, inside `depth` blocks."""
        pad = "    " * depth
        fitting = fitted(line, self.width - len(pad))
        self.out.append(pad + fitting.replace("\n", "\n" + pad))

    def emit_call(
        self, instruction: str, arguments: list[tuple[str, str]], guards: Sequence[str] = ()
    ) -> None:
        """`nisa.f(a=…)` inside its guards, broken over lines if long."""
        for depth, guard in enumerate(guards):
            self.emit(f"if {guard}:", depth)
        name = f"{self.alias('nisa')}.{instruction}"
        self.emit(call_text(name, arguments, self.width - 4 * len(guards)), len(guards))

    # -- findings

    def require(self, cause: Cause) -> str:
        """The rule that the statement needs; raises Deselected if the request left it out."""
        rule = self.rules.id_of(cause)
        if not self.request.selects(rule):
            raise Deselected(rule)
        return rule

    def report(
        self,
        cause: Cause,
        node: ast.AST,
        message: str,
        *,
        severity: Severity = Severity.ERROR,
        safety: Safety = Safety.SAFE,
        assumption: str | None = None,
    ) -> None:
        """A finding of the current statement; counted only if the statement converts."""
        rule = self.require(cause)
        if self.silenced(rule, getattr(node, "lineno", 0)):
            raise Deselected(rule)
        if assumption is not None and not self.request.unsafe_fixes:
            raise Unproved(cause, message, node, assumption)
        finding = replace(
            self.finding(rule, node, message, Safety.UNSAFE if assumption else safety),
            severity=severity,
            assumption=assumption,
            basis=tuple(dict.fromkeys(self.basis)),
        )
        if finding not in self._pending:
            self._pending.append(finding)

    def finding(self, cause: Cause, node: ast.AST, message: str, safety: Safety) -> Finding:
        """An error at a node of this function."""
        return Finding(
            self.rules.id_of(cause),
            place=self.index.source.region(node),
            severity=Severity.ERROR,
            safety=safety,
            message=one_line(message),
            kernel=self.function.name,
        )

    def commit_findings(self, statement: ast.stmt, change: Change) -> None:
        """Take the findings of the statement that was converted, with its edit.

        One that an earlier run left for its TODOs stays, so nothing is offered for it again.
        """
        taken, self._pending = self._pending, []
        if self.is_again and not change.touches:
            taken = [f for f in taken if f.safety is not Safety.SAFE]
        edits = self._edits(statement, change)
        self.findings += [
            replace(f, edits=edits, applied=f.safety is not Safety.MANUAL) for f in taken
        ]

    def _edits(self, statement: ast.stmt, change: Change) -> tuple[Edit, ...]:
        if change.lines is None:
            return ()
        line, column, end_line, end_column = self.index.source.span(statement)
        pad = self.index.source.indentation(line)
        text = "\n".join([*change.comments, *change.before, *change.lines]).replace(
            "\n", f"\n{pad}"
        )
        return (Edit(line, column, end_line, end_column, text),)

    def pending_findings(self) -> int:
        """How many findings the current statement has so far."""
        return len(self._pending)

    def forget_findings(self, count: int) -> None:
        """Back to the first `count` findings of the statement."""
        del self._pending[count:]

    def drop_findings(self) -> None:
        """Forget the findings of a statement that did not convert."""
        self._pending = []

    @contextmanager
    def counting_block(self) -> Iterator[None]:
        """Names of element counts made inside are not seen outside."""
        self.counts.append({})
        self.guards.append(set())
        try:
            yield
        finally:
            self.counts.pop()
            self.guards.pop()

    @contextmanager
    def inside(self, statement: ast.AST) -> Iterator[None]:
        """The body of a statement that may run several times: a loop, or a function."""
        outer, self.loops = self.loops, (*self.loops, self.site(statement))
        with self.counting_block():
            yield
        self.loops = outer

    # -- storages

    def use(self, tensor: Tensor, kind: str) -> None:
        """Note what a tensor is read for."""
        self.seen.uses.setdefault(tensor.storage.site, set()).add(kind)
        if kind != "product":
            self.wrote(tensor.storage, "other")

    def wrote(self, storage: Storage, kind: str) -> None:
        """Note the first use of a storage, if this is it."""
        self.seen.first_write.setdefault(storage.site, kind)

    def site(self, node: ast.AST) -> int:
        """An id of a place in the source, the same in both passes."""
        ends = ((getattr(node, "end_lineno", 0) & 0xFFF) << 12) + getattr(node, "end_col_offset", 0)
        return (getattr(node, "lineno", 0) << 36) + (getattr(node, "col_offset", 0) << 24) + ends


def one_line(text: str) -> str:
    """A text that may quote several lines of source, without line breaks."""
    return re.sub(r"\s*\\?\n\s*", " ", text)


def _is_number(value: Value, poly: Poly) -> bool:
    return isinstance(value, Sym) and value.poly == poly and not value.is_float


def _is_parameter(value: Value, poly: Poly) -> bool:
    return isinstance(value, Parameter) and poly == Poly.atom(f"{value.name}@{value.version}")
