"""Nothing is left that nobody uses, and what only users of ours call is named with its reason."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

from members import ROOT
from vulture import Vulture

from neuroncore.instructions import INSTRUCTIONS

# Called by a framework or a protocol, never by name.
IGNORED_NAMES = ["pytest_*", "visit_*", "leave_*"]
IGNORED_DECORATORS = ["@nox.session", "@app.command", "@app.callback", "@*.fixture"]
USED_BY = ("packages", "tools", "workspace", "tests", "examples", "benchmarks", "noxfile.py")
CASE_FILES = ("examples", "tests/corpora")  # their TOML files name kernels and references
KEPT = Path(__file__).with_name("kept_names.toml")  # "file:name" = "who calls it"


def named_in_cases() -> set[str]:
    """Every word of the case files: a case calls a kernel and its reference by name."""
    texts = (p.read_text("utf-8") for f in CASE_FILES for p in (ROOT / f).rglob("*.toml"))
    return {word for text in texts for word in re.findall(r"[A-Za-z_]\w*", text)}


@cache
def unused() -> set[str]:
    """`file:name` of everything that no code of the repository mentions outside `__all__`.

    Instruction records are found by the registry, kernels and references by their case files.
    """
    called = named_in_cases() | {name.upper() for name in INSTRUCTIONS}
    search = Vulture(ignore_names=IGNORED_NAMES, ignore_decorators=IGNORED_DECORATORS)
    search.scavenge([str(ROOT / name) for name in USED_BY if (ROOT / name).exists()])
    items = [i for i in search.get_unused_code(min_confidence=60) if i.name not in called]
    return {f"{Path(item.filename).relative_to(ROOT).as_posix()}:{item.name}" for item in items}


def test_everything_has_a_user_or_a_stated_reason():
    kept = tomllib.loads(KEPT.read_text(encoding="utf-8"))

    assert sorted(unused() - kept.keys()) == []


def test_every_stated_reason_is_still_needed():
    kept = tomllib.loads(KEPT.read_text(encoding="utf-8"))

    assert sorted(kept.keys() - unused()) == []
