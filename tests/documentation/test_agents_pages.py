"""AGENTS.md and the skill name commands and options that exist."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from members import ROOT

PAGES = ("AGENTS.md", "docs/skills/nki-bridge/SKILL.md")
TOOLS = "nki-migrate|nki-run|nkigen|nkigym|tokenplan|nki-scope"
COMMANDS = sorted(
    {
        span
        for page in PAGES
        for span in re.findall(rf"`((?:{TOOLS}) [^`]+)`", (ROOT / page).read_text(encoding="utf-8"))
    }
)


@cache
def help_of(*words: str) -> str:
    tool = Path(sys.executable).with_name(words[0])
    done = subprocess.run([tool, *words[1:], "--help"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_for_agents_has_its_subcommand_and_its_options(command: str):
    words = command.split()
    subcommand = words[1] if words[0] in ("nki-migrate", "nkigym", "tokenplan") else ""
    options = set(re.findall(r"(?<![\w-])(--[a-z][\w-]*|-[a-z]\b)", command)) - {"--help"}

    text = help_of(words[0], *([] if subcommand in ("", "--help") else [subcommand]))

    assert {option for option in options if option not in text} == set()


def test_the_pages_name_commands():
    assert len(COMMANDS) >= 15
