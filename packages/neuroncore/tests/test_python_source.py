"""Source that cannot be parsed is a SyntaxError, for every exception of Python."""

from __future__ import annotations

import pytest

from neuroncore.python_source import parse_python


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("a = (", "was never closed"),
        ("a\0b", "null bytes"),
        (b"# coding: none\n", "none"),
        ("a." * 100_000 + "a", "nested too deeply|too complex"),
        ("-" * 100_000 + "1", "nested too deeply|too complex|too many nested"),
        ("lambda:" * 5_000 + "1", "nested too deeply|too complex"),
    ],
)
def test_text_that_is_not_python_is_a_syntax_error(source, message):
    with pytest.raises(SyntaxError, match=message):
        parse_python(source)
