"""New simple statements print as libcst prints them, at any depth and with any line ending."""

import libcst as cst
import pytest

from nki_migrate.rewriting.plan.application import written

SIMPLE = {
    "assignment": ["x = nl.ndarray((128, n), dtype=nl.float32)"],
    "text": ["assert a == 1, 'a is (1)'", "return"],
    "call over lines": ["nisa.dma_copy(\n    dst=a[0:1, :],\n        src=b,\n)", "y = 1"],
}
OTHER = {
    "loop": ["for i in range(3):", "    f(i)"],
    "loop in a line": ["for i in range(3): f(i)"],
    "comment": ["x = 1  # one"],
    "two statements": ["x = 1; y = 2"],
    "two lines": ["x = 1\ny = (2)"],
    "texts over lines": ["f('a',\n  'b')"],
    "part of a call": ["f(", "    1,", ")"],
    "blank line inside": ["f(\n\n    1,\n)"],
}


def printed(statements: list[cst.BaseStatement], newline: str) -> str:
    loop = cst.While(cst.Name("b"), cst.IndentedBlock(statements))
    branch = cst.If(cst.Name("a"), cst.IndentedBlock([loop]))
    return cst.Module([branch], default_newline=newline).code


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("lines", SIMPLE.values(), ids=SIMPLE)
def test_simple_statements_print_as_their_parse_does(lines: list[str], newline: str) -> None:
    parsed: list[cst.BaseStatement] = []
    parsed += (
        cst.ensure_type(s, cst.BaseStatement) for s in cst.parse_module("\n".join(lines)).body
    )
    new = written(lines)
    assert len(new) == len(lines)
    assert printed(new, newline) == printed(parsed, newline)


@pytest.mark.parametrize("lines", OTHER.values(), ids=OTHER)
def test_what_is_not_for_certain_simple_is_left_to_the_parser(lines: list[str]) -> None:
    assert written(lines) == []
