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
        ("raise ValueError('mine')\n", "ValueError: mine"),
        ("import json\njson.loads('{')\n", "double quotes: line 1 column 2 (char 1)"),
        ("compile('(', 'other', 'exec')\n", "SyntaxError: '(' was never closed"),
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


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"x = 1\ndef f(:\n", ":2:7: not Python: invalid syntax\n    def f(:\n          ^\n"),
        (b"([[]]m)\n\xdd", ":2:1: not UTF-8: byte 0xdd on line 2; save the file as UTF-8 or "
         "declare its encoding in the first line (PEP 263)\n"),
        (b"x = 1\ny = '\0'\n", ":2:1: holds NUL bytes, as UTF-16 and UTF-32 do; save the file as "
         "UTF-8\n"),
        (b"# coding: none\n", ":1:1: unknown encoding: none in its first lines (PEP 263)\n"),
        (b"x = " + b"-" * 100_000 + b"1\n", ":1:1: not Python: nested too deeply\n"),
        (b"x = " + b"9" * 5000 + b"\n", ":1:1: not Python: an integer of too many digits\n"),
    ],
    ids=["syntax", "not UTF-8", "NUL", "cookie", "nested", "digits"],
)  # fmt: skip
def test_a_file_that_is_not_python_is_a_mistake_in_the_options(raw, message, tmp_path, capsys):
    file = tmp_path / "k.py"
    file.write_bytes(raw)

    with pytest.raises(SystemExit) as stop:
        run(lambda: find_function(parse_name(f"{file}:f")))

    assert stop.value.code == 2
    assert capsys.readouterr().err == f"tool: {file}{message}"


def test_an_import_that_is_not_python_is_an_error_of_the_program(tmp_path, capsys):
    (tmp_path / "not_python.py").write_text("def f(:\n")
    (tmp_path / "k.py").write_text("import not_python\n")

    assert run(lambda: find_function(parse_name(f"{tmp_path / 'k.py'}:f"))) == 1

    assert "SyntaxError" in capsys.readouterr().err


def test_an_error_of_the_command_itself_keeps_its_frames():
    with pytest.raises(AttributeError):
        run(lambda: find_function(cast(Any, 3)))
