"""Graphs of whole-tensor operations: nodes, building, text, execution."""

from nkigen_lite.ir.builder import Builder
from nkigen_lite.ir.graph import (
    Graph,
    assigned_names,
    body_of,
    print_graph,
    run_graph,
    users,
    values_of,
    verify_graph,
)
from nkigen_lite.ir.nodes import Node, Value
from nkigen_lite.ir.parser import parse_graph

__all__ = [
    "Builder",
    "Graph",
    "Node",
    "Value",
    "assigned_names",
    "body_of",
    "parse_graph",
    "print_graph",
    "run_graph",
    "users",
    "values_of",
    "verify_graph",
]
