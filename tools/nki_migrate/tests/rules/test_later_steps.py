"""Rules of the steps after 0.2, each alone: what they change, and what they leave alone."""

from __future__ import annotations

import ast
import textwrap

import pytest

from neuroncore.findings import Finding, Safety
from neuroncore.surface import Param, Signature
from nki_migrate.engine.migration import migrate_source
from nki_migrate.index import FileIndex, Source, apply_edits
from nki_migrate.rules import Site, all_rules
from nki_migrate.rules.inserted_parameters import first_difference
from nki_migrate.settings.request import Request

LATER = [rule for rule in all_rules().values() if rule.step[0] != "0.1"]
HEAD = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n\n@nki.jit\ndef kernel(x):\n"


def findings_of(rule_ids: tuple[str, ...], text: str) -> tuple[list[Finding], Source]:
    source = Source(text, "kernel.py")
    site = Site(FileIndex(source), Request())
    found = []
    for rule_id in rule_ids:
        rule = all_rules()[rule_id]
        for node in ast.walk(source.tree):
            if rule.hooks.check is not None and isinstance(node, rule.hooks.nodes):
                found += rule.hooks.check(node, site)
    return found, source


def rewritten(rule_ids: tuple[str, ...], text: str) -> str:
    found, source = findings_of(rule_ids, text)
    return apply_edits(source, [edit for finding in found for edit in finding.edits])


def kernel(body: str) -> str:
    return HEAD + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"


def body_after(rule: str, body: str) -> str:
    return textwrap.dedent(rewritten((rule,), kernel(body)).removeprefix(HEAD)).strip("\n")


AUTOMATIC = [rule for rule in LATER if rule.safety is Safety.SAFE]


def test_every_later_rule_has_an_example():
    assert not [rule.id for rule in LATER if not rule.examples]


@pytest.mark.parametrize("rule", AUTOMATIC, ids=lambda rule: rule.id)
def test_later_rules_have_nothing_to_say_about_their_good_examples(rule):
    for example in (e for e in rule.examples if e.good != e.bad):  # others are reported only
        assert findings_of((rule.id,), example.good)[0] == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # only 0.2 reads it: in 0.3 the keyword would be given twice
        ("(t, p, off, 1, t, 0.0, cmp_op=nl.less)", "named"),
        # six positional arguments: a comparison in sixth place is 0.3's cmp_op
        ("(t, p, 1, t, 0.0, nl.less)", "kept"),
        ("(t, p, 1, t, 0.0, nl.less, off)", "kept"),
        ("(t, p, 1, t, 0.0, offset=off)", "kept"),
        ("(t, p, off, channel_multiplier=1, on_true_tile=t, on_false_value=0.0)", "named"),
    ],
)
def test_affine_select_is_read_by_the_only_order_that_fits(old, new):
    found, _ = findings_of(("NKI2005",), kernel(f"nisa.affine_select{old}"))

    assert [bool(f.edits) for f in found] == ([True] if new == "named" else [])


def test_affine_select_that_fits_both_orders_is_left_to_a_person():
    found, _ = findings_of(("NKI2005",), kernel("nisa.affine_select(t, p, a, b, c, d)"))

    assert [(f.safety, f.edits) for f in found] == [(Safety.MANUAL, ())]
    assert "name the arguments manually" in found[0].message


def test_a_mode_passed_by_position_gets_its_name_but_a_priority_stays():
    assert (
        body_after("NKI3007", "nisa.dma_copy(a, b, nisa.oob_mode.skip)")
        == "nisa.dma_copy(a, b, oob_mode=nisa.oob_mode.skip)"
    )
    assert findings_of(("NKI3007",), kernel("nisa.dma_copy(a, b, 3)"))[0] == []


def test_none_checks_of_host_code_stay():
    text = "import nki\n\n@nki.jit\ndef k(x):\n    return x\n\ndef host(x):\n    return x is None\n"

    assert rewritten(("NKI2015",), text) == text


def test_identity_between_two_names_is_no_none_check():
    assert body_after("NKI2015", "y = x is x\nz = x is not None") == "y = x is x\nz = x != None"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("def kernel(x, *, flag=True):", "def kernel(x, flag=True):"),
        ("def kernel(*, x, y):", "def kernel(x, y):"),
        (
            "def kernel(\n    x,\n    *,\n    flag=True,\n):",
            "def kernel(\n    x,\n    flag=True,\n):",
        ),
        (
            "def kernel(x,  # the * below\n    *, flag=1):",
            "def kernel(x,  # the * below\n    flag=1):",
        ),
        ("def kernel(x=2 * 3, *, flag=1):", "def kernel(x=2 * 3, flag=1):"),
    ],
)
def test_the_star_before_keyword_only_parameters_goes(header, expected):
    text = f"import nki\n\n@nki.jit\n{header}\n    return x\n"

    assert rewritten(("NKI2014",), text) == text.replace(header, expected)


def test_keyword_only_parameters_that_would_need_another_order_stay():
    text = "import nki\n\n@nki.jit\ndef k(x, a=1, *, b):\n    return x\n"

    found, _ = findings_of(("NKI2014",), text)

    assert [f.safety for f in found] == [Safety.MANUAL]


def test_a_list_default_that_the_kernel_changes_is_left_to_a_person():
    text = "import nki\n\n@nki.jit\ndef k(x, w=[1]):\n    w.append(2)\n    return x\n"

    found, _ = findings_of(("NKI2016",), text)

    assert [(f.safety, f.edits) for f in found] == [(Safety.MANUAL, ())]


def test_a_real_mask_is_never_dropped():
    found, _ = findings_of(("NKI2032",), kernel("nisa.tensor_copy(a, b, mask=m)"))

    assert [(f.safety, f.edits) for f in found] == [(Safety.MANUAL, ())]


def test_a_fraction_in_an_integer_tile_is_left_to_a_person():
    body = "t = nl.ndarray((4, 4), dtype=nl.int8, buffer=nl.sbuf)\nnisa.memset(t[0:2], 0.5)"

    found, _ = findings_of(("NKI2006",), kernel(body))

    assert [(f.safety, f.edits) for f in found] == [(Safety.MANUAL, ())]


def test_a_tile_of_unknown_dtype_keeps_its_value():
    body = "t = nl.ndarray((4, 4), dtype=x.dtype, buffer=nl.sbuf)\nnisa.memset(t, 2)"

    assert findings_of(("NKI2006",), kernel(body))[0] == []


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("for i in nl.dynamic_range(n):\n    if i:\n        break", "leaves the loop"),
        ("s = 0\nfor i in nl.dynamic_range(n):\n    s = s + 1\nprint(s)", "rebinds s"),
        ("r = nisa.register_alloc()\nfor i in nl.dynamic_range(r):\n    f(i * 2)", "calculates"),
        ("for i in nl.dynamic_range(0, n, -1):\n    f(i)", "positive number"),
        ("with nl.no_reorder():\n    for i in nl.dynamic_range(n):\n        f(i)", "no_reorder"),
        ("for i in nl.dynamic_range(n):\n    f(x)\nprint(i)", "i is used after the loop"),
        ("for i in nl.dynamic_range(n):\n    i = i + 1", "rebinds i, the variable"),
        ("for i in nl.dynamic_range(n):\n    f(x)\nelse:\n    f(x)", "an else part"),
        ("for i, j in nl.dynamic_range(n):\n    f(x)", "several targets"),
        ("for i in nl.dynamic_range(*n):\n    f(x)", "not start, stop and step"),
        ("tiles = []\nfor i in nl.dynamic_range(n):\n    tiles.append(x)", "changes `tiles`"),
        ("for i in nl.dynamic_range(n):\n    x.turns = 1", "changes `x.turns`"),
        ("for i in nl.dynamic_range(n):\n    t = nl.load(x)\nf(t)", "in front of the loop, and"),
        ("for i in nl.dynamic_range(n):\n    t = x[i]\nf(t)", "its value depends on i"),
        (
            "for i in nl.dynamic_range(n):\n    for j in range(2):\n"
            "        nisa.memset(x, 0.0, name='zero')",
            "the name 'zero' to several",
        ),
        (
            "p = nl.ndarray((4, 4), nl.float32, nl.psum)\nfor i in nl.dynamic_range(n):\n"
            "    nisa.nc_matmul(p[0:4], x, x)",
            "the PSUM tile of the turn before",
        ),
    ],
)
def test_loops_whose_bodies_cannot_be_functions_are_manual(body, why):
    found, _ = findings_of(("NKI6001",), kernel(body))

    assert [f.edits for f in found] == [()]
    assert why in found[0].message


def test_two_device_loops_keep_their_order_and_their_comments():
    first = "for i in nl.dynamic_range(n):  # first\n    f(x)  # call\n"
    body = first + "for j in nl.dynamic_range(m):\n    g(x)"

    after = body_after("NKI5001", body)

    assert after.splitlines()[:3] == [
        "def body(i):  # first",
        "    f(x)  # call",
        "nl.fori_loop(0, n, body)",
    ]
    assert after.splitlines()[3:] == ["def body_2(j):", "    g(x)", "nl.fori_loop(0, m, body_2)"]


def test_a_range_with_other_keywords_is_left_to_a_person():
    found, _ = findings_of(("NKI5004",), kernel("for i in nl.affine_range(4, unroll=2):\n    pass"))

    assert [(f.safety, f.edits) for f in found] == [(Safety.MANUAL, ())]


@pytest.mark.parametrize(("target", "word"), [("0.6", "deprecated"), ("0.7", "removed")])
def test_a_device_loop_is_called_what_it_is_at_the_target(target, word):
    text = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def copy(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.dynamic_range(0, 4):
        nisa.dma_copy(dst=out.ap([[64, 128], [1, 64]], scalar_offset=i), src=x)
    return out
"""
    (found,) = migrate_source(text, "k.py", Request(target=target)).findings

    assert found.message == f"nl.dynamic_range is {word}: nl.fori_loop"


def test_a_parameter_that_is_only_renamed_has_not_moved():
    old = Signature("f", "0.5", (Param("dst", "dst"), Param("data", "data")))
    renamed = Signature("f", "0.6", (Param("dst", "dst"), Param("src", "data")))
    moved = Signature(
        "f", "0.6", (Param("dst", "dst"), Param("mode", "mode"), Param("data", "data"))
    )

    assert first_difference(old, renamed) is None
    assert first_difference(old, moved) == 1
