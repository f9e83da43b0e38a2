"""Reading the text of a graph."""

from __future__ import annotations

import ast
from typing import Any, NoReturn

import numpy as np

from neuroncore.python_source import parse_python
from nkigen_lite.ir.graph import Graph, body_of, verify_graph
from nkigen_lite.ir.nodes import Node, Value
from nkigen_lite.ir.printer import constant_of
from nkigen_lite.ops import OPS
from nkigen_lite.tensors.errors import GraphTextError, SpecError
from nkigen_lite.tensors.spec import Spec, as_spec


def parse_graph(text: str) -> Graph:
    """The graph that the text prints.

    Raises GraphTextError for text that is not a graph, GraphError for a graph that breaks a rule.
    """
    try:
        tree = parse_python(text)
    except SyntaxError as wrong:
        raise GraphTextError(f"line {wrong.lineno}: {wrong.msg}") from None
    match tree.body:
        case [ast.FunctionDef() as function]:
            return verify_graph(_Reader(text, function).graph())
    raise GraphTextError("the text is not one function", expected="def name(x0: float32[4]): …")


class _Reader:
    def __init__(self, text: str, function: ast.FunctionDef) -> None:
        self.text, self.function = text, function
        self.specs: dict[str, Spec] = {}

    def graph(self) -> Graph:
        inputs = [Value(a.arg, self.spec(a.annotation)) for a in self.function.args.args]
        self.specs |= {v.name: v.spec for v in inputs}
        nodes: list[Node] = []
        writes: list[tuple[str, str]] = []
        outputs: tuple[str, ...] | None = None
        for statement in self.function.body:
            match statement:
                case ast.Assign([ast.Name(name)], ast.Call(ast.Name(op)) as call):
                    nodes.append(self.node(name, op, call))
                    self.specs[name] = nodes[-1].spec
                case ast.Assign([ast.Subscript(ast.Name(name))], ast.Name(value)):
                    writes.append((name, value))
                case ast.Return(value):
                    outputs = self.names(value)
                case _:
                    self.reject(statement, "is not a statement of a graph")
        if outputs is None:
            self.reject(self.function, "returns nothing")
        return Graph(self.function.name, tuple(inputs), tuple(nodes), outputs, tuple(writes))

    def node(self, name: str, op: str, call: ast.Call) -> Node:
        if op not in OPS:
            self.reject(call, f"calls {op}, which is not an operation")
        record = OPS[op]
        if op == "constant":
            operands, attrs = (), self.constant(call)
        else:
            operands = tuple(n for a in call.args for n in self.names(a))
            attrs = record.converted(self.attrs(call))
        unknown = [o for o in operands if o not in self.specs]
        if unknown:
            self.reject(call, f"uses {unknown[0]} before it is made")
        spec = record.result(tuple(self.specs[o] for o in operands), attrs)
        return Node(name, op, operands, attrs, spec)

    def attrs(self, call: ast.Call) -> dict[str, Any]:
        given = {k.arg or "**": self.literal(k.value) for k in call.keywords}
        if "body" in given:
            given["body"] = body_of(parse_graph(given["body"]))
        return given

    def constant(self, call: ast.Call) -> dict[str, Any]:
        if len(call.args) != 2:
            self.reject(call, "is not constant(number or bytes, spec)")
        spec = self.spec(call.args[1])
        template = np.broadcast_to(np.zeros((), spec.storage), spec.shape)
        try:
            given = self.literal(call.args[0])
            return {"value": constant_of(given, template, spec.dtype)}
        except (ValueError, TypeError) as wrong:
            self.reject(call, f"holds no such constant: {wrong}")

    def names(self, node: ast.expr | None) -> tuple[str, ...]:
        match node:
            case None:
                return ()
            case ast.Name(name):
                return (name,)
            case ast.Tuple(elements):
                return tuple(n for e in elements for n in self.names(e))
        return self.reject(node, "is not a name of a value")

    def literal(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Name):
            return node.id  # a dtype
        try:
            return ast.literal_eval(node)
        except ValueError:
            self.reject(node, "is not a value of an attribute")

    def spec(self, node: ast.expr | None) -> Spec:
        text = ast.get_source_segment(self.text, node) if node else None
        try:
            return as_spec(text or "")
        except SpecError as wrong:
            self.reject(node or self.function, f"is not a spec: {wrong.what}")

    def reject(self, node: ast.AST, what: str) -> NoReturn:
        shown = (ast.get_source_segment(self.text, node) or "").partition("\n")[0]
        raise GraphTextError(f"line {getattr(node, 'lineno', 0)}: {shown!r} {what}")
