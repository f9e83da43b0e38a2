"""`draft-rules` replayed on the releases that were: what it would have proposed of the mechanical
changes that the machine's signatures (`isa.txt`) and the rules of 0.2 to 0.7 hold now.

It sees two columns of `nki_names.json` and nothing else; 0.2 had two releases, and so has two
columns. A mechanical change is a function that is added, removed or renamed, a parameter that is
inserted, appended, removed, renamed or reordered, and a default that is given, taken or changed.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise, product

import pytest
from nki_coverage import NAMES

from neuroncore.surface import VERSIONS, Param, Signature, instruction_names, signature
from neuroncore.surface._read import _parse
from nki_migrate.drafting import Api, Kind, drafts, read_api
from nki_migrate.rules import all_rules

STEPS = list(pairwise(VERSIONS[1:]))
Change = tuple[str, str, str, str]
"""The version that has it, the kind, the function, the parameter."""


def drafted(old: str, new: str) -> dict[str, str]:
    files, _ = drafts(read_api(f"{NAMES}@{old}"), read_api(f"{NAMES}@{new}"))
    return dict(files)


def described(version: str) -> list[Api]:
    """The columns of a version: of 0.2 also that of its first release, SDK 2.27."""
    api = read_api(f"{NAMES}@{version}")
    if version != "0.2":
        return [api]
    first = read_api(str(NAMES.with_name("nki_names_2_27.json")))
    return [api, replace(first, entries={**api.entries, **first.entries})]


def proposed(old: str, new: str) -> set[Change]:
    """Every change that the drafts name; one that breaks calls has to be in a rule file."""
    columns = product(described(old), described(new))
    return {change for one, other in columns for change in _named(new, drafts(one, other)[0])}


def _named(new: str, files: Mapping[str, str]) -> set[Change]:
    rows = json.loads(files["changes.json"])["changes"]
    rules = [tomllib.loads(text) for name, text in files.items() if name.startswith("rules/")]
    in_rules = {_key(new, row) for rule in rules for row in rule["mechanical"]}
    quiet = {Kind.FUNCTION_ADDED, Kind.APPENDED, Kind.OPTIONAL, Kind.POSITIONAL}
    return in_rules | {_key(new, row) for row in rows if row["kind"] in quiet}


def _key(new: str, row: dict[str, str]) -> Change:
    return new, row["kind"], row["name"].removeprefix("nki."), row.get("parameter", "")


# -- what isa.txt holds ----------------------------------------------------------------------------


def held_by_signatures(old: str, new: str) -> Iterator[Change]:
    """The differences of the signatures of two versions, by sets of names and nothing more."""
    before, after = set(instruction_names(old)), set(instruction_names(new))
    yield from ((new, "function added", f"isa.{name}", "") for name in after - before)
    yield from ((new, "function removed", f"isa.{name}", "") for name in before - after)
    for name in before & after:
        one, other = signature(name, old), signature(name, new)
        assert one is not None and other is not None
        for kind, parameter in _differences(one, other):
            yield new, kind, f"isa.{name}", parameter


def _differences(one: Signature, other: Signature) -> Iterator[tuple[str, str]]:
    """Differences of two signatures; a parameter that fills the same field is the same one."""
    names = {p.field: p.name for p in one.params}
    yield from (("renamed", names[p.field]) for p in other.params if _is_renamed(p, one, other))
    before = {p.name: p for p in one.params}
    after = {names[p.field] if _is_renamed(p, one, other) else p.name: p for p in other.params}
    shared = [name for name in before if name in after]
    yield from (("removed", name) for name in before if name not in after)
    last = max(list(after).index(name) for name in shared)
    for place, name in enumerate(after):
        if name not in before:
            yield ("inserted" if place < last else "appended"), name
    if shared != [name for name in after if name in before]:
        yield "reordered", ""
    for name in shared:
        yield from _of_default(name, before[name], after[name])


def _is_renamed(param: Param, one: Signature, other: Signature) -> bool:
    """Whether a parameter has another name before, which no parameter has afterwards."""
    names = {p.field: p.name for p in one.params}
    earlier = names.get(param.field, param.name)
    return earlier != param.name and earlier not in {p.name for p in other.params}


def _of_default(name: str, one: Param, other: Param) -> Iterator[tuple[str, str]]:
    if one.required is not other.required:
        yield ("made optional" if one.required else "made required"), name
    elif one.default != other.default:
        yield "default changed", name


# -- what the rules hold ---------------------------------------------------------------------------

HELD_BY_RULES: dict[str, list[tuple[str, str, str]]] = {
    "NKI1145": [("removed", "language.shared_constant", "dtype")],
    "NKI2003": [("removed", "isa.dma_copy", "dst_rmw_op"),
                ("removed", "isa.dma_copy", "unique_indices")],
    "NKI2005": [("reordered", "isa.affine_select", ""),
                ("made optional", "isa.affine_select", "offset")],
    "NKI2007": [("reordered", "isa.dma_compute", ""),
                ("made optional", "isa.dma_compute", "scales")],
    "NKI2008": [("inserted", "isa.sendrecv", "dma_engine"),
                ("removed", "isa.sendrecv", "use_gpsimd_dma")],
    "NKI2009": [("renamed", "isa.register_move", "imm")],
    "NKI2010": [("removed", "collectives.collective_permute_implicit_current_processing_rank_id",
                 "num_channels")],
    "NKI2017": [("removed", "jit", "platform_target")],
    "NKI2020": [("inserted", "isa.nc_matmul", "accumulate")],
    "NKI2031": [("removed", "isa.nc_matmul", "psumAccumulateFlag"),
                ("renamed", "isa.nc_matmul", "is_moving_zero")],
    "NKI2030": [("function removed", "isa.tensor_copy_dynamic_src", ""),
                ("function removed", "isa.tensor_copy_dynamic_dst", "")],
    "NKI2033": [("default changed", "isa.range_select", "reduce_cmd"),
                ("default changed", "isa.range_select", "on_false_value")],
    "NKI2034": [("default changed", "language.num_programs", "axes"),
                ("default changed", "isa.core_barrier", "engine"),
                ("made optional", "isa.iota", "offset"),
                ("made optional", "language.program_id", "axis")],
    "NKI3007": [("inserted", "isa.dma_copy", "priority"),
                ("inserted", "isa.dma_transpose", "priority")],
    "NKI3008": [("inserted", "isa.tensor_scalar_reduce", "reduce_cmd"),
                ("inserted", "isa.tensor_scalar_reduce", "reduce_init"),
                ("inserted", "isa.dma_compute", "oob_mode")],
    "NKI4004": [("default changed", f"isa.{name}", "engine")
                for name in ("rng", "rand_get_state", "rand_set_state")],
    "NKI5001": [("function added", "language.fori_loop", "")],
    "NKI5002": [("function added", "language.while_loop", "")],
    "NKI5006": [("inserted", "isa.tensor_scalar_reduce", "reduce_res_negate"),
                ("made optional", "isa.tensor_scalar_reduce", "reduce_res")],
    "NKI6001": [("function removed", "language.dynamic_range", "")],
    "NKI6014": [("inserted", "isa.activation", "engine"), ("inserted", "isa.activate2", "engine"),
                ("inserted", "isa.topk", "sorted"),
                *(("inserted", "isa.scalar_tensor_tensor", p)
                  for p in ("reduce_cmd", "reduce_op", "reduce_res"))],
}  # fmt: skip
"""The mechanical changes of each rule; the other rules of these steps are about meanings, values,
enums, Python's syntax, or names that are not functions."""

NOT_IN_SIGNATURES = {
    ("0.3", "removed", "isa.sendrecv", "use_gpsimd_dma"): "the migration guide alone has it",
    ("0.3", "removed", "isa.nc_matmul", "psumAccumulateFlag"): "release notes alone have it",
    ("0.3", "renamed", "isa.nc_matmul", "is_moving_zero"): "release notes alone have it",
    ("0.3", "removed", "jit", "platform_target"): "it is one of **kwargs",
}  # fmt: skip
"""What no pair of columns shows, and why."""


def held() -> set[Change]:
    found = {change for step in STEPS for change in held_by_signatures(*step)}
    for rule, changes in HELD_BY_RULES.items():
        step = max(int(rule[len("NKI")]), 2)
        found |= {(VERSIONS[step], *change) for change in changes}
    return found


def without_place(change: Change) -> Change:
    """A reordering is one change, of whichever parameter."""
    new, kind, name, parameter = change
    return new, kind, name, "" if kind == "reordered" else parameter


def test_nine_of_ten_mechanical_changes_are_proposed():
    found = {without_place(c) for step in STEPS for c in proposed(*step)}
    wanted = held()
    missed = wanted - found

    assert missed == set(NOT_IN_SIGNATURES)
    assert len(wanted - missed) >= 0.9 * len(wanted)


def test_rules_that_are_counted_exist():
    assert HELD_BY_RULES.keys() <= all_rules().keys()


@pytest.mark.parametrize(("old", "new"), STEPS)
def test_the_lines_of_signatures_are_those_of_the_table(old, new):
    lines = [n for n in drafted(old, new)["isa.txt"].splitlines() if not n.startswith("#")]
    read = {(s.name, s.version): s for line in lines for s in _parse(line)}

    for version in (old, new):
        for name in instruction_names(version):
            expected = signature(name, version)
            assert expected is not None
            is_new = signature(name, old) is None  # which record fields it fills, no page says
            assert _comparable(read[name, version], is_new) == _comparable(expected, is_new)


def _comparable(found: Signature, is_new: bool) -> list[tuple[object, ...]]:
    """Names, record fields and defaults; an elided default is compared with nothing."""
    return [
        (
            p.name,
            () if is_new else p.fields,
            p.keyword_only,
            None if p.name in ELIDED else p.default,
        )
        for p in found.params
    ]


ELIDED = {"on_false_value", "reduce_op"}
"""Parameters whose default the stubs of some versions print as an ellipsis."""


@pytest.mark.parametrize(("old", "new"), STEPS)
def test_the_conformance_rows_are_those_of_both_columns(old, new):
    rows = json.loads(drafted(old, new)["nki_names.json"])["names"]
    columns = {v: read_api(f"{NAMES}@{v}").entries for v in (old, new)}

    spans = {old: {old, f"{old}-{new}"}, new: {new, f"{old}-{new}"}}
    for version, entries in columns.items():
        texts = {f"{m}.{n}": t for m, names in rows.items() for n, row in names.items()
                 for span, t in row["versions"] if span in spans[version]}  # fmt: skip
        assert texts == {name: entry.text for name, entry in entries.items()}
