"""No error that an instruction's code makes is missing from docs/coverage.md and instructions.md.

The calls are taken from the source files here, without following what calls what.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pages import reference

import neuroncore.instructions as package
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.isa.unsupported import code_rejections, common_rejections, is_told

FOLDER = Path(package.__file__).parent
COVERAGE = reference("coverage.md")
INSTRUCTIONS_PAGE = reference("instructions.md")
OF_TEXTS = ("rule", "each")
"""They take the text after the condition, the error and the operand."""


def errors_in(tree: ast.AST) -> Iterator[ast.Call]:
    """Calls of Violation, of error classes and of functions that make limits of texts."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name = node.func.id
            is_error = name.endswith("Error") and name != "AttributeError"
            if is_error or name in ("Violation", *OF_TEXTS):
                yield node


def longest_text(call: ast.Call) -> str:
    """The longest constant part of what an error says, else of what it expected."""
    args = call.args[3 * (ast.unparse(call.func) in OF_TEXTS) :]
    parts = [*args, *(k.value for k in call.keywords if k.arg in ("expected", "rule", "section"))]
    for part in parts:
        strings = [n.value for n in ast.walk(part) if isinstance(n, ast.Constant)]
        texts = (re.split(r"\{[^{}]*\}?|^[^{}]*\}", s) for s in strings if isinstance(s, str))
        found = max((s for text in texts for s in text), key=len, default="")
        if len(found) > 3:
            return found
    raise AssertionError(f"line {call.lineno}: an error without words of its own")


ERRORS = [
    pytest.param(file, call, id=f"{file.stem}-{call.lineno}")
    for file in sorted(FOLDER.glob("*.py"))
    for call in errors_in(ast.parse(file.read_text(encoding="utf-8")))
    if "self.error" not in ast.unparse(call)
]


def sections(page: str, heading: str, names: list[str]) -> str:
    return "".join(page.split(f"\n{heading} {n}\n")[1].split(f"\n{heading} ")[0] for n in names)


@pytest.mark.parametrize(("file", "call"), ERRORS)
def test_every_error_of_an_instruction_stands_on_both_pages(file, call):
    module = f"{package.__name__}.{file.stem}"
    own = [r.name for r in INSTRUCTIONS.values() if r.run.__module__ == module]
    text = longest_text(call)
    limits = sections(COVERAGE, "###", own) if own else COVERAGE
    told = sections(INSTRUCTIONS_PAGE, "##", own) if own else INSTRUCTIONS_PAGE

    assert text in limits
    assert " ".join(text.split()) in " ".join(told.split())


def test_rejections_name_the_record_and_constants_and_leave_out_what_comes():
    found = code_rejections(INSTRUCTIONS["nc_n_gather"])

    assert "an index is {…} (expected: 0 to {…}) [NKI: nc_n_gather, index range]" in found


def test_a_condition_on_the_text_gives_two_rejections():
    found = code_rejections(INSTRUCTIONS["iota"])

    rule = "[NKI: compile-time constants]"
    assert f"offset is not an int (expected: a compile-time int) {rule}" in found
    assert f"offset is too large (expected: a compile-time int of at most 64 bits) {rule}" in found


def test_what_all_instructions_reject_is_said_once():
    assert "{…} is in {…} (expected: {…}) [NKI: {…}, memories]" in common_rejections()
    assert any(t.startswith("scalar_offset is {…}, outside") for t in common_rejections())
    assert any("moves the access outside" in t for t in common_rejections())


@pytest.mark.parametrize(
    ("text", "told"),
    [("most 128 x 128 (now)", True), ("most 128 x 128", False), ("most (now)", False)],
)
def test_a_rejection_is_told_by_a_text_with_values_in_its_places(text, told):
    assert is_told("most {…} x {…} (now)", [text]) is told


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nc_transpose", "the vector engine transposes at most 32 x 32"),
        ("nc_matmul", "0.1 to 0.7, on trn2: float8_e4m3fn needs gen4 and NKI 0.4"),
        ("memset", "also: value {…} for {…} elements (expected: 0, the only constant"),
        ("nc_stream_shuffle", "also: shuffle_mask is not a list of 32 partitions"),
        ("dma_copy", "also: vector_offset row {…} is {…}, outside the indexed dimension"),
        ("tensor_scalar_cumulative", "- 0.2 to 0.7: src has"),
    ],
)
def test_the_page_has_limits_of_all_kinds(name, text):
    assert text in sections(COVERAGE, "###", [name])


def test_views_say_where_a_pattern_leaves_their_tensor():
    assert "the access pattern leaves the tensor (expected: elements 0 to {…})" in COVERAGE
