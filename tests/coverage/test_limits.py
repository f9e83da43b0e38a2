"""Limits in docs/coverage.md: every one of every record, and every function has its own or none."""

from __future__ import annotations

import re
from itertools import product

import pytest
from nki_coverage import found_of, known_names, modelled, modules_of
from nki_limits import (
    LOOSE,
    followed,
    having,
    limit_text,
    limit_versions,
    number_checked,
    record_limits,
)
from pages import reference

from neuroncore.instructions import INSTRUCTIONS
from neuroncore.isa.examples import example_call
from neuroncore.isa.unsupported import codes, function_rejections, is_told, reached
from neuroncore.surface import VERSIONS, span, version_tuple
from neuroncore.targets import TARGETS

PAGE = reference("coverage.md")
MODULES = {version: modules_of(version) for version in VERSIONS}
LIMITS = [
    pytest.param(record, limit, id=f"{record.name}-{number}")
    for record in INSTRUCTIONS.values()
    for number, limit in enumerate(record.limits)
]
CALLED = [
    pytest.param(name, id=f"{name.module}.{name.name}")
    for name in known_names()
    if name.kind in ("function", "method")
    and any(modelled(MODULES[v], name) == "yes" for v in name.versions[name.versions[0] == "0.1" :])
]


def section(name: str) -> str:
    return PAGE.split(f"\n### {name}\n")[1].split("\n#")[0]


@pytest.mark.parametrize(("record", "limit"), LIMITS)
def test_a_limit_of_a_record_stands_in_the_page_with_its_versions(record, limit):
    versions = limit_versions(record, limit)
    lines = section(record.name).splitlines()

    assert versions
    for version in versions:
        text = limit_text(record, limit, version)
        assert [t.partition(": ")[2] for t in lines].count(text) == 1
        assert version in record_limits(record.name)[text]


@pytest.mark.parametrize("name", CALLED)
def test_a_function_has_its_limits_in_its_row_or_says_none(name):
    part = PAGE.split(f"\n## {name.module}\n")[1].split("\n## ")[0]
    (row,) = re.findall(rf"^\| `{re.escape(name.name)}` \|.*$", part, re.MULTILINE)
    cell = row.strip("| ").rpartition("|")[2].strip()

    assert cell
    for found in found_of(name, MODULES).values():
        assert all(f"[{r}](#{r}) {number_checked(r)}" in cell for r in found.records)
        assert found.rejections or found.records or "none" in cell


@pytest.mark.parametrize(
    ("name", "records", "rejection"),
    [
        ("load", {"dma_copy"}, "{…} is in {…} (expected: {…}) [NKI: nl.{…}]"),
        ("matmul", {"nc_matmul", "nc_transpose", "tensor_copy"}, "a tile of {…} dimensions"),
        ("tanh", {"activation"}, "{…} partitions in {…}"),
        ("sum", {"tensor_reduce"}, "{…} partitions in {…}"),
        ("rand", {"rng", "tensor_scalar"}, "nl.rand gives no {…}"),
    ],
)
def test_a_function_is_followed_to_its_instructions_and_rejections(name, records, rejection):
    found = followed(getattr(MODULES["0.6"]["nki.language"], name))

    assert found.records == records
    assert any(text.startswith(rejection) for text in found.rejections)


@pytest.mark.parametrize(
    ("name", "issues"),
    [
        ("mod", ["works in simulation and fails", "tiles of two shapes may not"]),
        ("fmod", ["works in simulation and fails", "tiles of two shapes may not"]),
        ("divide", ["is not supported on a device", "tiles of two shapes may not"]),
        ("matmul", ["a product without transpose_x"]),
        ("softmax", []),
    ],
)
def test_a_function_names_what_of_it_no_device_runs(name, issues):
    (row,) = re.findall(rf"^\| `{name}` \|.*$", PAGE.split("## nki.language")[1], re.MULTILINE)
    listed = dict(re.findall(r"^- (D\d+): (.*)$", PAGE, re.MULTILINE))
    marks = re.findall(r"\bD\d+", row.partition("0.5, 0.6:")[2] or row)

    assert sorted(listed[m][:20] for m in marks) == sorted(text[:20] for text in issues)


def test_a_limit_that_differs_by_version_is_told_for_each():
    found = {t: span(v) for t, v in record_limits("dma_transpose").items() if "(8, 8)" in t}
    ends = {v: t for t, v in found.items()}

    assert "shape[-1] at most 128" in ends["0.4 to 0.7"]
    assert "expected: 3-D" in ends["0.2"]


MOVED = {
    # what the documents give, by version and generation
    "nc_matmul": [
        "0.1 to 0.7: moving free size 640 exceeds 512",
        "0.1 to 0.7, on trn3: moving free size 4097 exceeds 4096",
        "0.1 to 0.4, on trn3: moving free size 8193 exceeds 4096",
        "0.5 to 0.7, on trn3: moving free size 8193 exceeds 8192",
        "0.1 to 0.7, on trn3: dst is float16 (expected: bfloat16 or float32)",
    ],
    "nc_matmul_mx": [
        "0.2 to 0.4: moving free size 513 exceeds 512 (expected: at most 512 into float32)",
        "0.2 to 0.4: moving free size 1025 exceeds 1024 (expected: at most 1024 into bfloat16)",
        "0.5 to 0.7: moving free size 4097 exceeds 4096 (expected: at most 4096 into float32)",
        "0.5 to 0.7: moving free size 8193 exceeds 8192 (expected: at most 8192 into bfloat16)",
    ],
    "dma_transpose": [
        "0.1 to 0.5: hwdge does not transpose (15, 64) (expected: shape[0] 16 and shape[-1] a "
        "multiple of 128)",
        "0.6 and 0.7: hwdge does not transpose (15, 64) (expected: shape[0] 16; shape[-1] at most "
        "128)",
        "0.6 and 0.7: hwdge does not transpose (8, 3, 64) (expected: shape[0] 1, 2, 4, 8 or 16, "
        "times shape[-2] a multiple of 16; shape[-1] at most 128)",
        "0.2: the index tile is (128, 2), uint32, SBUF (expected: uint32 in SBUF, 2-D, 16 to 128 "
        "partitions in steps of 16, columns 1)",
    ],
    "max8": [
        "0.1 to 0.3: src has 6 dimensions (expected: at most 5)",
        "0.4 to 0.7: src has 4 dimensions (expected: at most 3)",
    ],
    "nc_find_index8": [
        "0.1 to 0.3: data has 6 dimensions (expected: at most 5)",
        "0.4 to 0.7: data has 4 dimensions (expected: at most 3)",
    ],
}


@pytest.mark.parametrize("name", MOVED)
def test_a_limit_that_moved_stands_in_the_page_in_each_of_its_forms(name):
    lines = section(name).splitlines()

    for start in MOVED[name]:
        assert sum(line.startswith(f"- {start}") for line in lines) == 1, start


SETTINGS = {"version", "target", "generation"}
SAYS_WHERE = re.compile(r"gen\d|came with NKI|since 0\.\d|NKI (up to )?0\.\d|from 0\.\d on")
ENDS = {
    "hwdge moves raw bytes and cannot convert": "from 0.3 on",
    "dst reaches byte {…} of a PSUM bank": "gen4 writes all banks",
    "reduce_op subtract is not modelled": "0.2 and 0.3 have it",
    "{…} is not an operation of {…}": "0.1 documents divide and mod, gen4 has the others",
    "src is in {…}": "no view on chip takes a vector offset, so that none comes here",
    "accumulate=True in transpose mode": "before gen3 is_transpose multiplies",
    "moving is not a square identity matrix": "before gen3 is_transpose multiplies",
}
"""Rejections that some version or generation has not, and whose text does not say so."""


def reads_setting(function):
    return bool(SETTINGS & {n for code in codes(function.__code__) for n in code.co_names})


@pytest.mark.parametrize("record", INSTRUCTIONS.values(), ids=lambda r: r.name)
def test_what_reads_version_or_generation_is_broken_in_each_of_them(record):
    """One example for a limit hides it where the limit is another one."""
    for check in dict.fromkeys(limit.check for limit in record.limits):
        functions = reached([check])
        if not any(map(reads_setting, functions)):
            continue
        texts = {text for f in functions for text in function_rejections(f, record.name)}
        where = [t for t in texts if not SAYS_WHERE.search(t) and not t.startswith((*ENDS,))]
        for version, target in product(having(record.name), TARGETS):
            told = list(texts_of(record, check, version, target))
            assert all(is_told(text, told) for text in where), (version, target)


def texts_of(record, check, version, target):
    """What the limit's calls are told in a version on a target."""
    setting = {"version": version_tuple(version), "target": target}
    for limit in record.limits:
        if limit.check is check:
            given = {"options": LOOSE} | dict(limit.breaks) | setting
            for wrong in check(example_call(record, record.examples[0], **given).call):
                yield f"{wrong.what} (expected: {wrong.expected}) [{wrong.rule}]"


def test_versions_of_a_limit_are_in_order():
    for name in INSTRUCTIONS:
        for versions in record_limits(name).values():
            assert versions == [v for v in VERSIONS if v in versions]


def test_versions_are_those_in_which_the_call_is_rejected():
    (text,) = [t for t in record_limits("activation_reduce") if t.startswith("reduce_res is None")]

    assert span(record_limits("activation_reduce")[text]) == "0.1 to 0.5"
