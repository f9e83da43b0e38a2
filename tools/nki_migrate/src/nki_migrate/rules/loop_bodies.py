"""Loops of the device as functions: the text of a loop whose body becomes a named function.

Nested loops are converted inside out, each on the text that the one before it left, so that what
an inner loop moves in front of itself is seen by the outer one.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from neuroncore.findings import Edit, python_lines
from nki_migrate.index import FileIndex, Source, apply_edits
from nki_migrate.index.matching import opcodes
from nki_migrate.rules.arguments import has_unknown_arguments
from nki_migrate.rules.loop_registers import (
    carried_registers,
    is_known_number,
    is_read_below,
    is_register,
    needs_register,
    register_of,
)
from nki_migrate.rules.loop_state import (
    DeviceLoop,
    Hoisted,
    Kind,
    ObstacleError,
    check_form,
    check_instructions,
    check_names,
)
from nki_migrate.rules.site import Site
from nki_migrate.rules.tiles import fresh_name
from nki_migrate.settings.request import Request


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result for a device loop: the edits of its whole nest, or why its body stays.

    `changes` says what moved beside the body.
    """

    edits: tuple[Edit, ...] = ()
    kind: Kind = Kind.FORM
    reason: str = ""
    changes: tuple[tuple[Kind, str], ...] = ()


def is_device_loop(loop: DeviceLoop, site: Site) -> bool:
    """Whether the device counts: `for … in nl.dynamic_range(…)`, `while register`."""
    if isinstance(loop, ast.While):
        return register_of(loop, site) is not None
    call = loop.iter
    return isinstance(call, ast.Call) and site.canonical(call.func) == "nl.dynamic_range"


@lru_cache(maxsize=8)
def converted_loops(index: FileIndex, has_scalars: bool) -> Mapping[DeviceLoop, Outcome]:
    """The device loops of a file; `has_scalars`: the variable may be a scalar (from 0.7 on)."""
    site = Site(index, Request())
    loops = _device_loops(site)
    names = {i: _name_of_body(i, index) for i in range(len(loops))}
    found: dict[DeviceLoop, Outcome] = {}
    for root in loops:
        if not any(a in loops for a in index.ancestors(root)):
            nest = [i for i, loop in enumerate(loops) if root in (loop, *index.ancestors(loop))]
            outcomes = _convert_nest(index, loops, nest, names, has_scalars)
            found |= {loops[i]: outcome for i, outcome in outcomes.items()}
    return found


def _device_loops(site: Site) -> list[DeviceLoop]:
    loops = [
        n
        for n in site.index.nodes
        if isinstance(n, ast.For | ast.While)
        and site.function_of(n) is not None
        and is_device_loop(n, site)
    ]
    return sorted(loops, key=lambda n: (n.lineno, n.col_offset))


def _name_of_body(place: int, index: FileIndex) -> str:
    """`body`, or `body_2` for the second such loop of the file, …; never a name in use."""
    taken = {n.id for n in index.nodes if isinstance(n, ast.Name)}
    taken |= {n.name for n in index.nodes if isinstance(n, ast.FunctionDef)}
    taken |= {n.arg for n in index.nodes if isinstance(n, ast.arg)}
    stem = "body" if place == 0 else f"body_{place + 1}"
    return next(
        name for name in (stem + "_" * i for i in range(len(taken) + 1)) if name not in taken
    )


def _convert_nest(
    index: FileIndex,
    loops: Sequence[DeviceLoop],
    nest: Sequence[int],
    names: Mapping[int, str],
    has_scalars: bool,
) -> dict[int, Outcome]:
    depth = {i: sum(a in loops for a in index.ancestors(loops[i])) for i in nest}
    found, remaining, current = {}, list(range(len(loops))), index
    changes: dict[int, tuple[tuple[Kind, str], ...]] = {}
    for i in sorted(nest, key=lambda i: (-depth[i], i)):
        site = Site(current, Request())
        loop = _device_loops(site)[remaining.index(i)]
        try:
            conversion = _Conversion(loop, site, names[i], has_scalars)
        except ObstacleError as obstacle:
            found[i] = Outcome(kind=obstacle.kind, reason=obstacle.reason)
            continue
        text = apply_edits(current.source, conversion.edits())
        current = FileIndex(Source(text, index.source.path), index.elsewhere)
        changes[i] = tuple(conversion.changes)
        remaining.remove(i)
    edits = tuple(_line_edits(index.source, current.source.text))
    return found | {i: Outcome(edits, changes=moved) for i, moved in changes.items()}


def _line_edits(source: Source, text: str) -> list[Edit]:
    """The edits by lines from a source to a text; new lines go behind the line above them."""
    lines, edits = python_lines(text), []
    for tag, i1, i2, j1, j2 in opcodes(source.lines, lines):
        new = "".join(lines[j1:j2])
        if tag == "insert" and i1 > 0:
            end = len(source.lines[i1 - 1].rstrip("\r\n")) + 1
            edits.append(Edit(i1, end, i1, end, source.newline + new.rstrip("\r\n")))
        elif tag != "equal":
            end = len(source.lines[i2 - 1]) + 1 if i2 > i1 else 1
            edits.append(Edit(i1 + 1, 1, max(i2, i1 + 1), end, new))
    return edits


@dataclass(frozen=True, slots=True)
class _Bounds:
    low: str
    high: str
    step: str
    nodes: tuple[ast.expr, ...]
    """The bounds as written, the upper one first."""


@dataclass(slots=True)
class _Texts:
    """Lines to add, without their indentation."""

    before: list[str] = field(default_factory=list)
    first: list[str] = field(default_factory=list)
    last: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)


class _Conversion:
    """One loop whose inner device loops are converted; raises ObstacleError."""

    def __init__(self, loop: DeviceLoop, site: Site, name: str, has_scalars: bool) -> None:
        self._loop, self._site, self._name = loop, site, name
        self.changes: list[tuple[Kind, str]] = []
        self._texts = _Texts()
        self._language = self._alias("nl")
        check_form(loop, site)
        if has_scalars:
            check_instructions(loop, site)
        self._hoisted = check_names(loop, site)
        condition = register_of(loop, site) if isinstance(loop, ast.While) else None
        registers = carried_registers(loop, site, condition)
        for moved in self._hoisted:
            self._move(moved)
        for register, dtype in registers.items():
            self._carry(register, dtype)
        if isinstance(loop, ast.For):
            self._count(loop, has_scalars)
        else:
            self._wait(str(condition))

    def _alias(self, short: str) -> str:
        alias = self._site.index.alias_for(short)
        if alias is None:
            module = {"nl": "nki.language", "nisa": "nki.isa"}[short]
            raise ObstacleError(Kind.FORM, f"`{module}` is not imported")
        return alias

    def _move(self, moved: Hoisted) -> None:
        self._texts.before.append(moved.text)
        name = moved.statement.targets[0]
        assert isinstance(name, ast.Name)
        said = f"`{name.id}` is made in front of the loop: it is used after it"
        self.changes.append((Kind.TENSOR, said))

    def _carry(self, register: str, dtype: str) -> None:
        """A register that carries a number goes through a cell in SBUF."""
        nisa, nl = self._alias("nisa"), self._language
        cell = fresh_name(f"{register}_cell", self._site)
        self._texts.before += [
            f"{cell} = {nl}.ndarray((1, 1), dtype={nl}.{dtype}, buffer={nl}.sbuf)",
            f"{nisa}.register_store({cell}, {register})",
        ]
        self._texts.first += [
            f"{register} = {nisa}.register_alloc()",
            f"{nisa}.register_load({register}, {cell})",
        ]
        self._texts.last.append(f"{nisa}.register_store({cell}, {register})")
        self._texts.after.append(f"{nisa}.register_load({register}, {cell})")
        said = f"the register `{register}` is held in `{cell}` between turns"
        self.changes.append((Kind.STATE, said))

    # -- for

    def _count(self, loop: ast.For, has_scalars: bool) -> None:
        assert isinstance(loop.target, ast.Name)
        bounds = self._bounds(loop)
        low, high = bounds.low, bounds.high
        has_register = any(is_register(b, self._site) for b in bounds.nodes)
        if not has_scalars or has_register:
            self._check_arithmetic(loop, loop.target.id)
        elif needs_register(loop, self._site):
            low, high = self._register_bound(bounds, loop.target.id)
        step = f", step={bounds.step}" if bounds.step else ""
        self._texts.after.insert(
            0, f"{self._language}.fori_loop({low}, {high}, {self._name}{step})"
        )

    def _check_arithmetic(self, loop: ast.For, variable: str) -> None:
        nodes = (n for s in loop.body for n in ast.walk(s))
        if any(_counts_with(node, variable) for node in nodes):
            raise ObstacleError(
                Kind.FORM, f"the body calculates with {variable}, which is a register"
            )

    def _register_bound(self, bounds: _Bounds, variable: str) -> tuple[str, str]:
        """Bounds of which one is a register, so that the variable is one, too."""
        nisa = self._alias("nisa")
        bound = fresh_name(f"{variable}_end", self._site)
        said = f"the body uses `{variable}` as a register: one bound becomes a register"
        self.changes.append((Kind.VARIABLE, said))
        high, *rest = bounds.nodes
        if is_known_number(high, self._site):
            self._texts.before.append(f"{bound} = {nisa}.register_alloc({bounds.high})")
            return bounds.low, bound
        if not rest or is_known_number(rest[0], self._site):
            first = fresh_name(f"{variable}_start", self._site)
            self._texts.before.append(f"{first} = {nisa}.register_alloc({bounds.low})")
            return first, bounds.high
        raise ObstacleError(
            Kind.FORM,
            f"the body uses {variable} as a register, and its bounds may be numbers: make one "
            f"of them a register",
        )

    def _bounds(self, loop: ast.For) -> _Bounds:
        assert isinstance(loop.iter, ast.Call)
        given = _bounds_of(loop.iter)
        step = given.get("step")
        if isinstance(step, ast.UnaryOp | ast.Constant) and not _is_positive(step):
            raise ObstacleError(Kind.FORM, "the step has to be a positive number")
        text = self._site.source
        nodes = [given[n] for n in ("stop", "start") if n in given]
        low = text(given["start"]) if "stop" in given and "start" in given else "0"
        return _Bounds(low, text(nodes[0]), text(step) if step is not None else "", tuple(nodes))

    # -- while

    def _wait(self, register: str) -> None:
        self._texts.last.append(f"return {register}")
        self._texts.after.insert(0, f"{self._language}.while_loop({register}, {self._name})")
        if is_read_below(register, self._loop, self._site):
            nisa = self._alias("nisa")
            ended = f"{nisa}.register_move({register}, {nisa}.register_alloc(0))"
            self._texts.after.insert(1, ended)
            self.changes.append((Kind.STATE, f"`{register}` is read below, where it is 0"))

    # -- text

    def edits(self) -> list[Edit]:
        """The edits on the text of this loop, its inner ones converted."""
        loop, source, texts = self._loop, self._site.index.source, self._texts
        outside = source.indentation(loop.lineno)
        newline = source.newline
        line, column, _, _ = source.span(loop)
        head = loop.iter if isinstance(loop, ast.For) else loop.test
        _, _, end_line, end_column = source.span(head)
        parameter = loop.target if isinstance(loop, ast.For) else loop.test
        header = f"def {self._name}({source.segment(parameter)})"
        before = "".join(f"{text}{newline}{outside}" for text in texts.before)
        edits = [Edit(line, column, end_line, end_column, f"{before}{header}")]
        if source.span(loop.body[0])[0] == end_line:
            return [*edits, self._on_one_line(outside)]
        return [*edits, *self._around_body(outside), *self._of_hoisted()]

    def _around_body(self, outside: str) -> list[Edit]:
        source, texts, newline = (
            self._site.index.source,
            self._texts,
            self._site.index.source.newline,
        )
        first = source.span(self._loop.body[0])[0]
        first = min([first, *(d.lineno for d in getattr(self._loop.body[0], "decorator_list", ()))])
        inside = source.indentation(first)
        above = "".join(f"{inside}{text}{newline}" for text in texts.first)
        last = self._last_line(len(outside))
        end = len(source.lines[last - 1].rstrip("\r\n")) + 1
        lines = [f"{inside}{t}" for t in texts.last] + [f"{outside}{t}" for t in texts.after]
        below = "".join(f"{newline}{line}" for line in lines)
        edits = [Edit(last, end, last, end, below)]
        return [Edit(first, 1, first, 1, above), *edits] if above else edits

    def _last_line(self, indentation: int) -> int:
        """The last line of the body, with the comments below it that are indented as it is."""
        source = self._site.index.source
        last = source.span(self._loop.body[-1])[2]
        for number in range(last + 1, len(source.lines) + 1):
            text = source.lines[number - 1]
            if text.strip() and not text.lstrip().startswith("#"):
                break
            if text.strip() and len(source.indentation(number)) > indentation:
                last = number
        return last

    def _on_one_line(self, outside: str) -> Edit:
        """`for …: f(i)`: the body takes lines of its own where something is added to it."""
        source, texts = self._site.index.source, self._texts
        start, end = source.span(self._loop.body[0]), source.span(self._loop.body[-1])
        body = source.text[source.offset(*start[:2]) : source.offset(*end[2:])]
        inside = f"{outside}    "
        lines = [f"{outside}{t}" for t in texts.after]
        if texts.first or texts.last:
            own = [f"{inside}{t}" for t in (*texts.first, body, *texts.last)]
            text = source.newline.join(["", *own, *lines])
        else:
            text = source.newline.join([body, *lines])
        return Edit(*start[:2], *end[2:], text)

    def _of_hoisted(self) -> list[Edit]:
        edits = []
        for moved in self._hoisted:
            site = self._site
            if moved.in_place:
                edits.append(site.replace(moved.statement, moved.in_place))
            else:
                edits.append(site.remove_line(moved.statement))
            for call, condition in moved.starts:
                edits.append(self._with_argument(call, f"accumulate={condition}"))
        return edits

    def _with_argument(self, call: ast.Call, text: str) -> Edit:
        """A keyword argument more, behind the others unless the last one is in parentheses."""
        site, source = self._site, self._site.index.source
        last = max((*call.args, *call.keywords), key=lambda a: source.span(a)[2:])
        end, whole_end = source.span(last)[2:], source.span(call)[2:]
        rest = source.text[source.offset(*end) : source.offset(*whole_end)]
        if rest == ")" or not call.keywords:
            return site.insert_after(last, f", {text}")
        return site.insert_before(call.keywords[0], f"{text}, ")


_PARAMETERS = ("start", "stop", "step")


def _bounds_of(call: ast.Call) -> dict[str, ast.expr]:
    """The arguments of `nl.dynamic_range` by name."""
    given = dict(zip(_PARAMETERS, call.args, strict=False))
    given |= {k.arg: k.value for k in call.keywords if k.arg}
    is_plain = len(call.args) <= len(_PARAMETERS) and given and not has_unknown_arguments(call)
    if not is_plain or set(given) - set(_PARAMETERS):
        raise ObstacleError(Kind.FORM, "its bounds are not start, stop and step")
    return given


def _is_positive(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value > 0


def _counts_with(node: ast.AST, name: str) -> bool:
    match node:
        case ast.BinOp(left=left, right=right):
            operands = [left, right]
        case ast.UnaryOp(operand=operand):
            operands = [operand]
        case ast.AugAssign(value=value):
            operands = [value]
        case _:
            operands = []
    return any(isinstance(part, ast.Name) and part.id == name for part in operands)
