"""The 0.1 examples against their references, straight on the language: no switch, no migrator."""

from __future__ import annotations

import importlib.util
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from neuroncore.machine.backend import Choice
from nki_beta1 import BACKEND

EXAMPLES = Path(__file__).parents[3] / "examples"
TIMED = 1024  # sizes from here on are for timing


def cases() -> Iterator[Any]:
    """(folder, case, values by argument name) for every case and its variants."""
    for folder in ("beta1", "beta1_todo"):
        table = tomllib.loads((EXAMPLES / folder / "cases.toml").read_text())
        for case in table["case"]:
            for number, changes in enumerate([{}, *case.get("more", [])]):
                args = [_changed(arg, changes) for arg in case["arg"]]
                if all(n < TIMED for arg in args for n in arg.get("shape", ())):
                    name = f"{folder}-{case['kernel']}-{case['seed']}-{number}"
                    yield pytest.param(folder, case, args, id=name)


def _changed(arg: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    key = "shape" if "shape" in arg else "value"
    return arg | {key: changes[arg["name"]]} if arg["name"] in changes else arg


def value(arg: dict[str, Any], rng: np.random.Generator) -> Any:
    if "shape" not in arg:
        return arg["value"]
    if arg.get("fill") == "uniform":
        array = rng.uniform(arg["low"], arg["high"], arg["shape"])
    else:
        array = rng.standard_normal(arg["shape"]) * arg.get("scale", 1.0)
    return array.astype(getattr(ml_dtypes, arg["dtype"], arg["dtype"]))


def module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"beta1_{path.parent.name}_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.fixture
def as_neuronxcc(monkeypatch):
    for name, found in BACKEND.modules(Choice("beta1", "0.1")).items():
        monkeypatch.setitem(sys.modules, name, found)


@pytest.mark.usefixtures("as_neuronxcc")
@pytest.mark.parametrize(("folder", "case", "args"), list(cases()))
def test_an_example_agrees_with_its_reference(folder, case, args):
    rng = np.random.default_rng(case["seed"])
    given = {arg["name"]: value(arg, rng) for arg in args}
    file, _, name = case["reference"].partition(":")

    result = getattr(module(EXAMPLES / folder / case["file"]), case["kernel"])(**given)
    expected = getattr(module(EXAMPLES / folder / file), name)(**given)

    assert result.dtype == expected.dtype and result.shape == expected.shape
    if "ulps" in case:  # in units of bfloat16's last place, 8 bits of precision
        rtol, atol = case["ulps"] * 2.0**-7, 0.0
    else:
        rtol, atol = case.get("rtol", 0.0), case.get("atol", 0.0)
    np.testing.assert_allclose(
        result.astype(np.float64), expected.astype(np.float64), rtol=rtol, atol=atol
    )
