"""Formulas in one form; rules that disagree are named; a wrong rewrite is found by running it."""

from __future__ import annotations

import numpy as np
import pytest

from nkigen_lite import Graph, sigmoid, trace
from nkigen_lite.passes import canonicalize, check_pass, decompose
from nkigen_lite.passes.rewriting import Match, RewriteRule, of, rewrite
from nkigen_lite.tensors.errors import RewriteError

X = np.random.default_rng(2).standard_normal((4, 8)).astype(np.float32)


def operations(graph: Graph) -> list[str]:
    return [n.op for n in graph.nodes if n.op != "constant"]


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


FORMS = {
    "rsqrt": (lambda x: 1 / np.sqrt(x), ["rsqrt"]),
    "rsqrt_times": (lambda x: x / np.sqrt(np.abs(x)), ["abs", "rsqrt", "multiply"]),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), ["sigmoid"]),
    "sigmoid_added_last": (lambda x: 1 / (np.exp(-x) + 1), ["sigmoid"]),
    "silu": (lambda x: x / (1 + np.exp(-x)), ["silu"]),
    "silu_product": (lambda x: sigmoid(x) * x, ["silu"]),
    "softmax": (softmax, ["softmax"]),
    "softmax_of_columns": (lambda x: softmax(x.T).T, ["transpose", "softmax", "transpose"]),
    "rms_norm": (
        lambda x: x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6), ["rms_norm"],
    ),
    "rms_norm_squared": (
        lambda x: np.reciprocal(np.sqrt(1e-5 + np.mean(np.square(x), -1, keepdims=True))) * x,
        ["rms_norm"],
    ),
    "views_of_views": (lambda x: x.T.T.reshape(2, 16).reshape(4, 8), []),
    "slices": (lambda x: x[::-1][1:, 2:][::2, ::-3], ["slice"]),
    "write_back": (lambda x: _in_place(x), ["slice", "add", "update"]),
    "reductions_of_one": (lambda x: np.cumsum(x[:, None].max(1)[..., None], -1).mean(-1), []),
    "constants": (lambda x: x * (np.arange(8, dtype=np.float32) * 2).reshape(1, 8), ["multiply"]),
}  # fmt: skip


def _in_place(x):
    y = x.copy()
    y[1:3] += 1
    return y


@pytest.mark.parametrize(("function", "expected"), FORMS.values(), ids=FORMS)
def test_a_formula_becomes_the_operation_it_is(function, expected):
    x = np.abs(X)
    before = trace(function, x)

    after = check_pass("canonicalize", before, canonicalize(before), [x])

    assert operations(after) == expected


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.exp(x) / np.sum(np.exp(x), -1, keepdims=True),  # no maximum: may overflow
        lambda x: x / (2 + np.exp(-x)),
        lambda x: np.exp(x - np.max(x, 0)) / np.sum(np.exp(x - np.max(x, 0)), 0),
        lambda x: x / np.sqrt(np.mean(x * x) + 1e-6),
    ],
)
def test_what_only_looks_like_it_stays(function):
    graph = canonicalize(trace(function, X))

    assert not {"softmax", "silu", "sigmoid", "rms_norm"} & set(operations(graph))


@pytest.mark.parametrize(("function", "expected"), FORMS.values(), ids=FORMS)
def test_both_passes_come_to_rest(function, expected):
    graph = decompose(canonicalize(trace(function, X)))

    assert decompose(graph) == graph
    assert canonicalize(canonicalize(graph)) == canonicalize(graph)


def test_results_without_elements_are_constants():
    graph = canonicalize(trace(lambda x: np.exp(x[:0]) @ x.T, X))

    assert operations(graph) == []


def test_names_of_the_source_do_not_matter():
    def one(x, y):
        total = x + y
        return total * total

    def other(left, right):
        from numpy import add as plus

        z = plus(left, right)
        return z * z

    other.__name__ = "one"
    assert str(trace(one, X, X)) == str(trace(other, X, X))


def _negated(m: Match) -> str:
    return m.emit("negative", m.emit("subtract", m["y"], m["x"]))


def _subtracted(m: Match) -> str:
    return m.emit("subtract", m["y"], m["x"])


THERE = RewriteRule("subtract_is_negative", of("subtract", "x", "y"), _negated)
BACK = RewriteRule("negative_is_subtract", of("negative", of("subtract", "x", "y")), _subtracted)


def test_two_rules_that_undo_each_other_are_named():
    one_more = RewriteRule(
        "subtract_once", of("subtract", "x", "y"), _negated,
        lambda m: m.build.by_name.get(m["x"]) is None,
    )  # fmt: skip
    with pytest.raises(RewriteError) as rejected:
        rewrite(trace(lambda x: x - 1.0, X), [one_more, BACK])

    assert "negative_is_subtract and subtract_once undo each other" in str(rejected.value)


def test_rules_that_never_end_are_named():
    with pytest.raises(RewriteError, match="subtract_is_negative are still at work after 64"):
        rewrite(trace(lambda x: x - 1.0, X), [THERE])


def test_a_rule_that_changes_the_spec_is_named():
    flat = RewriteRule("flatten", of("exp", "x"), lambda m: m.emit("reshape", m["x"], shape=(32,)))
    with pytest.raises(RewriteError, match=r"rule flatten makes float32\[32\] of float32\[4, 8\]"):
        rewrite(trace(np.exp, X), [flat])


@pytest.mark.parametrize(
    "wrong",
    [
        lambda m: m.emit("expm1", m["x"]),
        lambda m: m.emit("add", m.emit("expm1", m["x"]), m.fill(1.0001, m.dtype)),
        lambda m: m.emit("log", m["x"]),
    ],
    ids=["another function", "one part in ten thousand", "NaN"],
)
def test_a_rewrite_that_computes_something_else_is_found(wrong):
    before = trace(np.exp, X)
    after = rewrite(before, [RewriteRule("wrong", of("exp", "x"), wrong)])

    with pytest.raises(RewriteError, match="wrong changed output 0 at"):
        check_pass("wrong", before, after, [X])


def test_a_changed_integer_is_found():
    x = np.arange(6, dtype=np.int32)
    before, after = trace(lambda x: x + 1, x), trace(lambda x: x + 2, x)

    with pytest.raises(RewriteError, match=r"p changed output 0 at \(0,\): was 1, is 2"):
        check_pass("p", before, after, [x])
