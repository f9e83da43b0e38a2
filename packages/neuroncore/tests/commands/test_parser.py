"""Mistakes in command lines, named in one form."""

from __future__ import annotations

import argparse

import pytest

from neuroncore.commands.parser import (
    Command,
    add_commands,
    add_output_format,
    at_least,
    make_parser,
    parse,
)


def stderr_of(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    parser = make_parser("tool", "Does.", "")
    commands = [Command(n, "x", add_output_format, lambda given: 0) for n in ("tune", "show")]
    parsers = add_commands(parser, commands, words)
    with pytest.raises(SystemExit, match="2"):
        parse(parsers[words[0]], words[1:]) if words[0] in parsers else parser.parse_args(words)
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tun"], "argument COMMAND: 'tun' is none of tune, show; did you mean 'tune'?"),
        (["moons"], "argument COMMAND: 'moons' is none of tune, show"),
        (
            ["tune", "--output-format", "jason"],
            "argument --output-format: 'jason' is none of text, json; did you mean 'json'?",
        ),
        (["tune", "--output-fromat", "json"], "did you mean '--output-format'?"),
        (["tune", "--output-format"], "argument --output-format: a value is missing (see"),
        (["tune", "--help=3"], "argument -h/--help: it takes no value; got '3' (see"),
    ],
)
def test_a_word_that_is_none_of_the_choices_is_named_with_the_nearest(words, message, capsys):
    assert message in stderr_of(words, capsys)


def test_only_the_command_of_the_line_gets_its_options(capsys):
    added = []
    commands = [Command(n, "x", added.append, lambda given: 0) for n in ("tune", "show")]

    add_commands(make_parser("tool", "Does.", ""), commands, ["--help"])
    assert added == []
    parsers = add_commands(make_parser("tool", "Does.", ""), commands, ["show", "a"])
    assert added == [parsers["show"]]


def test_a_description_of_one_line_is_wrapped_and_examples_stay(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    example = "  tool " + "--option value " * 6
    shown = make_parser("tool", "Does many things. " * 8, f"examples:\n{example}").format_help()

    assert max(map(len, shown.split("examples:")[0].splitlines())) < 60
    assert example in shown


@pytest.mark.parametrize("text", ["nan", "-1", "1e300", "9" * 5000, "x"])
@pytest.mark.parametrize("least", [0, 0.5])
def test_a_number_that_the_system_does_not_take_is_rejected(least, text):
    with pytest.raises(argparse.ArgumentTypeError, match="at most 1000000000"):
        at_least(least)(text)


def test_a_limit_of_time_may_be_infinite():
    assert at_least(0.5)("inf") == float("inf")
