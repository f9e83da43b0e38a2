"""`tokenplan check`: the independent checker, and the key of the file made again.

What the key is of, names and places left out, is the analysis's own; so is the code that makes it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator

from neuroncore.errors import LaunchError
from tokenplan import checker
from tokenplan.checker import Finding
from tokenplan.graph.canonical_key import key_of
from tokenplan.report import plan_file


def run(given: argparse.Namespace) -> int:
    """Prints the report; 1 where something is wrong, 2 for a file that is not a plan file."""
    return checker.run(given, _false_key)


def _false_key(text: str) -> Iterator[Finding]:
    """E4 where the key is not that of the kernel and the claims in the file."""
    said = json.loads(text)["key"]
    try:
        made = key_of(plan_file.read(text)[0])
    except LaunchError as damaged:
        yield Finding("E4", f"the key cannot be made again: {damaged.what}, {damaged.got}")
        return
    if made != said:
        yield Finding("E4", f"the key is {said}, but the kernel and its claims have {made}")
