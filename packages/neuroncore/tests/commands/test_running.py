"""What a command prints where a file of the user's raises, and where the command itself does."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from neuroncore.commands.function import find_function, parse_name
from neuroncore.commands.parser import Command, make_parser
from neuroncore.commands.running import run_commands


def run(function) -> int:
    command = Command("do", "something", lambda parser: None, lambda given: function())
    return run_commands(make_parser("tool", "Does.", ""), [command], ["do"])


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("def f(:\n", "SyntaxError: invalid syntax"),
        ("raise ValueError('mine')\n", "ValueError: mine"),
        ("import json\njson.loads('{')\n", "double quotes: line 1 column 2 (char 1)"),
    ],
)
def test_what_a_file_of_the_user_raises_is_shown_by_lines_of_the_user(text, last, tmp_path, capsys):
    file = tmp_path / "k.py"
    file.write_text(text)

    assert run(lambda: find_function(parse_name(f"{file}:f"))) == 1

    err = capsys.readouterr().err
    assert err.rstrip().endswith(last)
    assert str(file) in err
    assert str(Path("neuroncore", "commands")) not in err


def test_a_file_that_cannot_be_decoded_is_an_error_of_the_file(tmp_path, capsys):
    """Python 3.11 raises UnicodeDecodeError for this text, others SyntaxError."""
    file = tmp_path / "k.py"
    file.write_bytes(b"([[]]m)\xdd")

    assert run(lambda: find_function(parse_name(f"{file}:f"))) == 1

    err = capsys.readouterr().err
    assert "Error: " in err
    assert str(Path("neuroncore", "commands")) not in err


def test_an_error_of_the_command_itself_keeps_its_frames():
    with pytest.raises(AttributeError):
        run(lambda: find_function(cast(Any, 3)))
