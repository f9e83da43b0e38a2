"""Kernels in many styles compute what their references compute, before and after the migration."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.corpora.styles.harness import (
    HERE,
    all_cases,
    difference,
    expected,
    migrated,
    reasons_of,
    run_old,
    try_file,
)

from nki_migrate.cli.main import main
from nki_migrate.facts.observed import Observed

CASES_SAMPLE = ("homework_vectors", "layout_moves", "optimizers", "spmd_grids")
FILES = sorted((HERE / "kernels").glob("*.py"))


@pytest.mark.filterwarnings("default:dma_copy")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_old_kernels_agree_with_their_references(path: Path):
    for case in all_cases():
        if case.path == path:
            ran, _ = run_old(path, case)
            assert not ran.error, case.kernel
            assert not difference(case, ran, expected(case)), case.kernel


def test_every_file_has_cases():
    assert {case.path for case in all_cases()} == set(FILES)


@pytest.mark.thorough
@pytest.mark.filterwarnings("default:dma_copy")
@pytest.mark.parametrize("with_facts", [True, False], ids=["facts", "source"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_is_called_complete_is_verified(path: Path, with_facts: bool):
    cases = [case for case in all_cases() if case.path == path]

    tried = try_file(path, cases, with_facts=with_facts)

    assert [t for t in tried if t.word not in ("verified", "todo")] == []


def _complete(kernels: Iterable[Mapping[str, Any]]) -> set[str]:
    return {kernel["name"] for kernel in kernels if kernel["complete"]}


@pytest.mark.parametrize("stem", CASES_SAMPLE)
def test_cases_finish_what_facts_of_the_same_runs_finish(stem: str, tmp_path: Path, capsys):
    path = HERE / "kernels" / f"{stem}.py"
    seen = sum((run_old(path, c)[1] for c in all_cases() if c.path == path), Observed())
    from_facts = {k.name for k in migrated(path, seen).kernels if k.complete}

    options = ["--cases", str(HERE / "cases.toml"), "--output-dir", str(tmp_path), "--isolated"]
    main(["fix", str(path), *options, "--output-format", "json"])
    (file,) = json.loads(capsys.readouterr().out)["files"]

    assert from_facts
    assert from_facts <= _complete(file["kernels"])


TWO = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def first(x):
    out = nl.ndarray((64, 8), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    while tile.shape[0] > 64:
        tile = nl.add(tile, 1)
    nl.store(out, value=nl.add(nl.load(x), nl.load(out)))
    return out


@nki.jit
def second(p, q):
    out = nl.ndarray((64, 8), dtype=nl.float32, buffer=nl.shared_hbm)
    nl.store(out, value=nl.add(nl.load(p), nl.load(q)))
    return out
"""


def test_reasons_are_those_of_the_kernel(tmp_path: Path):
    path = tmp_path / "two.py"
    path.write_text(TWO, encoding="utf-8")
    result = migrated(path, Observed())

    assert "`p` and `q`" in reasons_of(result, "second")
    assert "`p` and `q`" not in reasons_of(result, "first")
