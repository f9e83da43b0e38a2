"""Graphs of whole-tensor operations: nodes, building, text, execution."""

from nkigen_lite.ir.build import Builder
from nkigen_lite.ir.nodes import Graph, Node, Value, users
from nkigen_lite.ir.parse import parse_graph
from nkigen_lite.ir.run import run_graph, values_of
from nkigen_lite.ir.text import print_graph
from nkigen_lite.ir.verify import verify_graph

__all__ = [
    "Builder",
    "Graph",
    "Node",
    "Value",
    "parse_graph",
    "print_graph",
    "run_graph",
    "users",
    "values_of",
    "verify_graph",
]
