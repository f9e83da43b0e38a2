"""State that the body of a device loop shares with the surrounding code, once it is a function.

The body runs once, while the kernel is traced. What it only reads it captures. A name that it binds
is its own, unless a turn needs the value of the turn before or the code below needs the last one;
then an allocation moves in front of the loop, a register goes through a cell in SBUF, and anything
else is an `ObstacleError`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeGuard

from nki_migrate.facts.live_variables import Variables, bindings, reads
from nki_migrate.index import walk
from nki_migrate.rules.arguments import keyword
from nki_migrate.rules.site import Site
from nki_migrate.rules.tiles import allocation_of, argument, base_of

DeviceLoop = ast.For | ast.While


class Kind(StrEnum):
    """The reason why a loop stays, or the change with it."""

    FORM = "form"
    STATE = "state"  # from turn to turn
    TENSOR = "tensor"  # of a body, used after its loop
    VARIABLE = "variable"  # of the loop, used as a register


class ObstacleError(Exception):
    """Why a body cannot become a function."""

    def __init__(self, kind: Kind, reason: str) -> None:
        super().__init__(reason)
        self.kind, self.reason = kind, reason


@dataclass(frozen=True, slots=True)
class Hoisted:
    """An assignment that moves in front of the loop.

    `in_place` is what remains at its place, `below` are matmuls of the body that have to start an
    accumulation group, each with the condition of its first turn.
    """

    statement: ast.Assign
    text: str
    in_place: str = ""
    starts: tuple[tuple[ast.Call, str], ...] = ()


# -- jumps and scopes

_SCOPES = (ast.Yield, ast.YieldFrom, ast.Await, ast.Nonlocal, ast.Global)
_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def check_form(loop: DeviceLoop, site: Site) -> None:
    """Raises ObstacleError for jumps, scopes, targets and places that a function cannot have."""
    if loop.orelse:
        raise ObstacleError(Kind.FORM, "the loop has an else part")
    if isinstance(loop, ast.For) and not isinstance(loop.target, ast.Name):
        raise ObstacleError(Kind.FORM, "the loop has several targets")
    if any(_leaves(s) for s in loop.body):
        raise ObstacleError(Kind.FORM, "the body leaves the loop or a name's scope")
    if any(_is_no_reorder(node, site) for node in site.index.ancestors(loop)):
        raise ObstacleError(
            Kind.FORM, "it is inside no_reorder(): open no_reorder in the body of the loop instead"
        )


def _leaves(node: ast.AST, in_loop: bool = False) -> bool:
    """Whether a part of the body jumps out of it: a `break` of a loop inside does not."""
    if isinstance(node, _NESTED):
        return False
    if isinstance(node, (ast.Return, *_SCOPES)):
        return True
    if isinstance(node, ast.Break | ast.Continue):
        return not in_loop
    in_loop = in_loop or isinstance(node, ast.For | ast.While)
    return any(_leaves(child, in_loop) for child in ast.iter_child_nodes(node))


def _is_no_reorder(node: ast.AST, site: Site) -> bool:
    return isinstance(node, ast.With) and any(
        isinstance(item.context_expr, ast.Call)
        and site.canonical(item.context_expr.func) == "nl.no_reorder"
        for item in node.items
    )


def check_instructions(loop: DeviceLoop, site: Site) -> None:
    """Raises ObstacleError for instructions that cannot be traced once for all turns."""
    inside = [node for statement in loop.body for node in walk(statement)]
    calls = [node for node in inside if isinstance(node, ast.Call)]
    _check_instruction_names([c for c in calls if _name_of(c, site) is not None], loop, site)
    own = {name for name, _ in bindings(loop.body)}
    for call in calls:
        if _goes_on_adding(call, own, site):
            raise ObstacleError(
                Kind.FORM, f"`{site.source(call)}` adds to the PSUM tile of the turn before: make "
                "the tile in the body and add the turns in SBUF",
            )  # fmt: skip


def _check_instruction_names(named: list[ast.Call], loop: DeviceLoop, site: Site) -> None:
    """Raises ObstacleError for a name of two instructions."""
    names: set[str | None] = set()
    for call in named:
        name = _name_of(call, site)
        if name in names or _is_repeated(call, loop, site):
            said = f"the body gives the name {name!r} to several instructions: number it"
            raise ObstacleError(Kind.FORM, said)
        names.add(name)


def _name_of(call: ast.Call, site: Site) -> str | None:
    """The name that a call writes for its instruction."""
    given = keyword(call, "name")
    name = given.value if given is not None else None
    if not (site.canonical(call.func) or "").startswith("nisa."):
        return None
    return name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else None


def _is_repeated(call: ast.Call, loop: DeviceLoop, site: Site) -> bool:
    """Whether a loop of Python in the body repeats a call."""
    for node in site.index.ancestors(call):
        if node is loop:
            return False
        if isinstance(node, ast.For | ast.While):
            return True
    return False


def _goes_on_adding(call: ast.Call, own: set[str], site: Site) -> bool:
    """Whether a matmul leaves open if it replaces or adds, in a tile made outside of the body."""
    if site.canonical(call.func) != "nisa.nc_matmul" or keyword(call, "accumulate") is not None:
        return False
    dst = argument(call, "dst", 0)
    made, tile = allocation_of(dst, site), base_of(dst)
    return made is not None and made.buffer == "nl.psum" and tile is not None and tile.id not in own


# -- names

_CHANGES = {
    *("append", "extend", "insert", "pop", "remove", "clear", "update", "setdefault", "add"),
    *("sort", "reverse", "discard", "popitem"),
}


def check_names(loop: DeviceLoop, site: Site) -> list[Hoisted]:
    """The assignments to move in front of the loop; raises ObstacleError where others remain."""
    bound = {name for name, _ in bindings(loop.body)}
    place = loop.target if isinstance(loop, ast.For) else loop.test
    assert isinstance(place, ast.Name)
    variable = place.id if isinstance(loop, ast.For) else ""
    bound -= set() if variable else {place.id}  # the body returns it
    if variable in bound:
        raise ObstacleError(Kind.STATE, f"the body rebinds {variable}, the variable of the loop")
    _check_changes(loop, bound, site)
    variables = Variables()
    carried = sorted(bound & variables.block(loop.body).needed)
    if carried:
        raise ObstacleError(
            Kind.STATE,
            f"the body rebinds {', '.join(carried)}, and a body is traced once: hold what changes "
            "from turn to turn in a tensor in front of the loop and write it in place",
        )
    after = variables.needed_after(loop, site.index)
    if variable in after:
        raise ObstacleError(Kind.STATE, f"{variable} is used after the loop")
    mover = _Mover(loop, site, bound, variable)
    for name in sorted(bound & after):
        mover.move(name)
    return sorted(mover.found.values(), key=lambda h: h.statement.lineno)


def _check_changes(loop: DeviceLoop, bound: set[str], site: Site) -> None:
    """Lists, dicts and objects that the body changes, made outside of it."""
    for node in (n for s in loop.body for n in walk(s)):
        place = _changed(node)
        name = _root(place)
        if place is not None and name is not None and name not in bound:
            raise ObstacleError(
                Kind.STATE,
                f"the body changes `{site.source(place)}`, and a body is traced once: hold state "
                "in a tensor in front of the loop",
            )


def _changed(node: ast.AST) -> ast.expr | None:
    """The Python object that a node changes in place."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        is_plain = isinstance(node.func.value, ast.Name | ast.Attribute)
        return node.func.value if node.func.attr in _CHANGES and is_plain else None
    is_place = isinstance(node, ast.Subscript | ast.Attribute)
    return node if is_place and not isinstance(node.ctx, ast.Load) else None  # type: ignore[union-attr, return-value]


def _root(node: ast.expr | None) -> str | None:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


# -- assignments that move in front of the loop

_PURE = (
    *(ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.BinOp, ast.UnaryOp),
    *(ast.BoolOp, ast.Compare, ast.IfExp, ast.Tuple, ast.JoinedStr, ast.FormattedValue),
    *(ast.Call, ast.keyword),
)
_PURE_CALLS = {"len", "min", "max", "int", "abs", "tuple"}
_VIEWS = {
    *("reshape", "ap", "slice", "select", "permute", "broadcast", "reshape_dim", "flatten_dims"),
    *("rearrange", "view", "expand_dim", "squeeze_dim"),
}
_FILLED = {"nl.zeros": "0", "nl.ones": "1", "nl.full": ""}
_INTEGERS = {f"nl.{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32)}


class _Mover:
    """Moves the assignments of names that the code below the loop uses."""

    def __init__(self, loop: DeviceLoop, site: Site, bound: set[str], variable: str) -> None:
        self._loop, self._site = loop, site
        self._bound, self._variable = bound, variable
        self.found: dict[str, Hoisted] = {}

    def move(self, name: str) -> None:
        """Move the assignment of a name, and before it of the names that its value reads."""
        if name in self.found:
            return
        statement = self._assignment(name)
        read = reads(statement.value)
        if self._variable in read:
            raise self._stuck(name, f"its value depends on {self._variable}")
        for other in sorted(read & self._bound):
            self.move(other)
        self.found[name] = self._hoisted(name, statement)

    def _stuck(self, name: str, why: str) -> ObstacleError:
        return ObstacleError(
            Kind.TENSOR, f"`{name}` is made in the body and used after the loop: {why}"
        )

    def _assignment(self, name: str) -> ast.Assign:
        nodes = [node for bound, node in bindings(self._loop.body) if bound == name]
        statement = self._site.index.parent(nodes[0]) if len(nodes) == 1 else None
        if not isinstance(statement, ast.Assign) or statement not in self._loop.body:
            raise self._stuck(name, "it is not made by one plain assignment of the body")
        if len(statement.targets) != 1 or not self._has_own_lines(statement):
            raise self._stuck(name, "its assignment does other things, too")
        return statement

    def _has_own_lines(self, statement: ast.stmt) -> bool:
        source = self._site.index.source
        line, column, end_line, end_column = source.span(statement)
        after = source.lines[end_line - 1][end_column - 1 :].strip()
        before = source.lines[line - 1][: column - 1].strip()
        return not before and (not after or after.startswith("#"))

    def _hoisted(self, name: str, statement: ast.Assign) -> Hoisted:
        value, site = statement.value, self._site
        made = site.canonical(value.func) if isinstance(value, ast.Call) else None
        if isinstance(value, ast.Call) and made in _FILLED:
            return self._filled(name, statement, value, made)
        if made == "nl.ndarray":
            starts = self._group_starts(name, statement)
            return Hoisted(statement, site.source(statement), self._in_place(statement), starts)
        if not _is_pure(value):
            raise self._stuck(name, "make it in front of the loop, and write it in the body")
        return Hoisted(statement, site.source(statement), self._in_place(statement))

    def _in_place(self, statement: ast.Assign) -> str:
        """The remainder of a moved assignment: the last of a body leaves no empty block."""
        return "pass" if statement is self._loop.body[-1] else ""

    def _filled(self, name: str, statement: ast.Assign, call: ast.Call, made: str) -> Hoisted:
        """`nl.zeros(…)` fills its tile in every turn: an allocation in front, a memset in place."""
        site = self._site
        language, instructions = site.index.alias_for("nl"), site.index.alias_for("nisa")
        fill = argument(call, "fill_value", 1) if made == "nl.full" else None
        value = site.source(fill) if fill is not None else self._number(name, statement, made)
        if instructions is None:
            raise self._stuck(name, "`nki.isa` is not imported")
        arguments = [*call.args, *(k for k in call.keywords if k.arg != "fill_value")]
        texts = ", ".join(site.source(a) for a in arguments if a is not fill)
        return Hoisted(
            statement,
            f"{name} = {language}.ndarray({texts})",
            f"{instructions}.memset({name}, {value})",
            self._group_starts(name, statement),
        )

    def _number(self, name: str, statement: ast.Assign, made: str) -> str:
        """0 or 1 in the form of the tile's dtype."""
        allocation = allocation_of(statement.targets[0], self._site)
        dtype = allocation.dtype if allocation is not None else None
        if dtype is None or not dtype.startswith("nl."):
            raise self._stuck(name, "its dtype is not known: allocate it in front of the loop")
        return _FILLED[made] + ("" if dtype in _INTEGERS else ".0")

    def _group_starts(self, name: str, statement: ast.Assign) -> tuple[tuple[ast.Call, str], ...]:
        """Of a PSUM tile: the matmul that starts each turn's accumulation group."""
        allocation = allocation_of(statement.targets[0], self._site)
        if allocation is None or allocation.buffer != "nl.psum":
            return ()
        calls = self._accumulating(name)
        if not calls and not self._has_views(name):
            return ()
        condition = self._first_turn(calls[0]) if calls else None
        if condition is None or self._has_views(name) or not self._is_one_group(calls, condition):
            raise self._stuck(name, "in front of it, all turns would accumulate in one PSUM tile")
        return ((calls[0], condition),)

    def _accumulating(self, name: str) -> list[ast.Call]:
        calls = [c for s in self._loop.body for c in walk(s) if self._accumulates(c, name)]
        return sorted(calls, key=lambda c: (c.lineno, c.col_offset))

    def _is_one_group(self, calls: list[ast.Call], condition: str) -> bool:
        """Whether all matmuls add to what the first one wrote."""
        targets = {ast.dump(argument(c, "dst", 0) or c) for c in calls}
        return len(targets) == 1 and (condition == "False" or len(calls) == 1)

    def _has_views(self, name: str) -> bool:
        """Whether another name may represent the tile or a part of it."""
        nodes = (n for s in self._loop.body for n in walk(s))
        return any(isinstance(n, ast.Assign) and name in reads(n.value) for n in nodes)

    def _accumulates(self, node: ast.AST, name: str) -> TypeGuard[ast.Call]:
        if not isinstance(node, ast.Call) or self._site.canonical(node.func) != "nisa.nc_matmul":
            return False
        target = base_of(argument(node, "dst", 0))
        return target is not None and target.id == name and keyword(node, "accumulate") is None

    def _first_turn(self, call: ast.Call) -> str | None:
        """`accumulate=` for a matmul that starts a group: of the body itself, or of one loop."""
        around = [n for n in self._site.index.ancestors(call) if isinstance(n, ast.stmt)][1:]
        if around[0] is self._loop:
            return "False"
        loop = around[0]
        if around[1] is not self._loop or not isinstance(loop, ast.For):
            return None
        is_range = isinstance(loop.iter, ast.Call) and len(loop.iter.args) == 1
        is_name = isinstance(loop.target, ast.Name)
        return f"{loop.target.id} > 0" if is_range and is_name else None  # type: ignore[attr-defined]


def _is_pure(value: ast.expr) -> bool:
    return all(isinstance(n, _PURE) and _is_pure_call(n) for n in walk(value))


def _is_pure_call(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return True
    if isinstance(node.func, ast.Attribute):
        return node.func.attr in _VIEWS
    return isinstance(node.func, ast.Name) and node.func.id in _PURE_CALLS
