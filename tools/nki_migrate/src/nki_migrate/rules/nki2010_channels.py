"""The number of channels of an implicit permutation is given where it permutes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Edit, Finding, Safety
from nki_migrate.rules.arguments import has_unknown_arguments, is_device_call, keyword
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_PERMUTE = "nki.collectives.collective_permute_implicit"
_RANK = f"{_PERMUTE}_current_processing_rank_id"


def _check(call: ast.Call, site: Site) -> Iterator[Finding]:
    given = keyword(call, "num_channels")
    if given is None or not is_device_call(call, site, _RANK):
        return
    said = "num_channels is gone: collective_permute_implicit takes channel_ids="
    count = given.value.value if isinstance(given.value, ast.Constant) else None
    permutes = _permutations(call, site)
    if count == 1 or (permutes and all(keyword(p, "channel_ids") for p in permutes)):
        edits = [site.without_keyword(call, "num_channels")]
    elif type(count) is int and permutes and not any(map(has_unknown_arguments, permutes)):
        ids = f"channel_ids={list(range(count))}"
        open_ones = [p for p in permutes if not keyword(p, "channel_ids")]
        edits = [_with_argument(p, ids, site) for p in open_ones]
        edits.append(site.without_keyword(call, "num_channels"))
    else:
        yield site.finding("NKI2010", call, said, safety=Safety.MANUAL)
        return
    yield site.finding("NKI2010", call, said, edits=edits)


def _permutations(call: ast.Call, site: Site) -> list[ast.Call]:
    function = site.function_of(call)
    assert function is not None
    calls = (n for n in ast.walk(function.node) if isinstance(n, ast.Call))
    return [c for c in calls if site.canonical(c.func) == _PERMUTE]


def _with_argument(call: ast.Call, text: str, site: Site) -> Edit:
    items = [*call.args, *(k.value for k in call.keywords)]
    return site.insert_after(items[-1], f", {text}")


HOOKS = Hooks(nodes=(ast.Call,), check=_check)
