"""How public 0.1 kernels call NKI, against the documented signatures and against ours.

`call_sites.json` counts the shapes of the calls (workspace/nki_call_sites.py). A call that fits
neither the documents nor us is listed with its reason.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any

import pytest
from members import ROOT
from nki_coverage import Name, known_names, modelled, modules_of

CALLS: dict[str, dict[str, int]] = json.loads(
    (ROOT / "tests" / "coverage" / "call_sites.json").read_text(encoding="utf-8")
)["calls"]
MODULES = {"nki": "nki", "nl": "nki.language", "nisa": "nki.isa", "nki.compiler": "nki.compiler"}
MODELS = modules_of("0.1")
NAMES = {(n.module, n.name): n for n in known_names() if "0.1" in n.versions}

UNDOCUMENTED = {
    # Names and options that no release documents: rejected here by name.
    "nisa.activation buffer": "an option of no release",
    "nisa.nc_matmul perf_mode": "documented from 0.2 on",
    "nisa.sparse_dot_product": "a function of no release",
    "nl.outer_product": "a function of no release",
    "nki.compile": "a function of no release",
    "nl.atomic_rmw predicate": "an option of no release",
    "nl.load mode": "an option of no release",
    "nl.store mode": "an option of no release",
    "nl.matmul dtype": "an option of no release",
    "nl.matmul transpose_b": "an option of no release",
    "nl.max keepdim": "keepdims, misspelt",
    "nl.mean keepdim": "keepdims, misspelt",
    "nl.sum keepdim": "keepdims, misspelt",
    "nl.ndarray lazy_initialization": "an option of nl.zeros in generated kernels",
    "nl.zeros(1)": "no dtype: an error in every release",
    # What 0.1's compiler took though its documents do not print it.
    "nisa.tensor_scalar_cumulative": "documented from 0.2 on, offered by 0.1's last compiler",
    "nisa.tensor_scalar_reduce(3 dtype reduce_op reduce_res)": "keyword-only in the pages",
    "nki.trace": "what generated kernels import; rejected when it is called",
    "nl.affine_range multi_buffer": "a hint to the scheduler",
    "nl.sequential_range directives": "a hint to the scheduler",
    "nl.sequential_range multi_buffer": "a hint to the scheduler",
    "nl.multiply max_free_vec_size": "an option of the compiler",
    "nl.zeros lazy_initialization": "an option of generated kernels; changes no value",
}
"""Function, function and keyword, or one shape: why its calls in public kernels fit no document."""


def split(function: str) -> tuple[str, str]:
    """ "nl.load" → ("nki.language", "load")"""
    owner, _, name = function.rpartition(".")
    return MODULES[owner], name


def shapes(*, only: Callable[[str, str], bool] = lambda function, shape: True) -> list[Any]:
    return [
        pytest.param(function, shape, id=f"{function}({shape.replace(' ', ', ')})")
        for function, counts in CALLS.items()
        for shape in counts
        if only(function, shape)
    ]


def bound(signature: inspect.Signature, shape: str) -> str | None:
    """What is said against a call of this shape, or None."""
    count, *keywords = shape.split()
    try:
        signature.bind(*range(int(count)), **dict.fromkeys(keywords))
    except TypeError as mismatch:
        return str(mismatch)
    return None


def excused(function: str, shape: str) -> bool:
    keywords = [f"{function} {keyword}" for keyword in shape.split()[1:]]
    return any(part in UNDOCUMENTED for part in (function, f"{function}({shape})", *keywords))


def documented(name: Name) -> inspect.Signature:
    """The signature that the documents print. `**kwargs` of nl and nisa is the compiler's."""
    names: dict[str, Any] = {"_": None}
    text = name.parameters["0.1"]
    text = text if name.module == "nki" else text.replace("**kwargs", "")
    exec(f"def f({quoted(text)}): ...", names)
    return inspect.signature(names["f"])


def quoted(parameters: str) -> str:
    """Parameters whose defaults are replaced, so that they need no names."""
    depth, kept, skipping = 0, "", False
    for character in parameters:
        depth += (character in "([") - (character in ")]")
        if character == "," and not depth:
            skipping = False
        if not skipping:
            kept += character
        if character == "=" and not depth:
            kept, skipping = kept + "_", True
    return kept.rstrip(", ")


def is_function(function: str, shape: str) -> bool:
    """Whether its parameters are known: constants such as nl.mgrid and nl.nc have none."""
    known = NAMES.get(split(function))
    return known is None or known.kind == "function"


def is_ours(function: str, shape: str) -> bool:
    """Whether the documents have the call, and we the function (docs/coverage.md)."""
    known = NAMES.get(split(function))
    if known is None or excused(function, shape):
        return False
    return is_function(function, shape) and modelled(MODELS, known) == "yes"


def closed(signature: inspect.Signature, function: str) -> inspect.Signature:
    """Without the `**kwargs` of nl and nisa: what they take is for the compiler."""
    kept = [
        p
        for p in signature.parameters.values()
        if function.startswith("nki.") or p.kind is not p.VAR_KEYWORD
    ]
    return signature.replace(parameters=kept)


@pytest.mark.parametrize(("function", "shape"), shapes(only=is_ours))
def test_a_public_call_fits_our_signature(function, shape):
    module, name = split(function)
    taken = inspect.signature(getattr(MODELS[module], name))

    assert bound(closed(taken, function), shape) is None


def test_most_public_calls_are_compared():
    calls = [(f, shape, n) for f, counts in CALLS.items() for shape, n in counts.items()]
    compared = sum(n for f, shape, n in calls if is_ours(f, shape))

    assert compared > 0.95 * sum(n for f, shape, n in calls if is_function(f, shape))


@pytest.mark.parametrize(("function", "shape"), shapes(only=is_function))
def test_a_public_call_fits_the_documents(function, shape):
    known = NAMES.get(split(function))

    problem = "not documented" if known is None else bound(documented(known), shape)

    assert (problem is not None) == excused(function, shape), problem


def test_every_exception_is_one():
    calls = [(function, shape) for function, counts in CALLS.items() for shape in counts]
    used = {f"{f} {k}" for f, shape in calls for k in shape.split()[1:]}
    used |= set(CALLS) | {f"{f}({shape})" for f, shape in calls}

    assert set(UNDOCUMENTED) <= used
