"""`engine=5`: enums are given by member."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding
from nki_migrate.rules.enums import members_for_codes
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site


def _check(call: ast.Call, site: Site) -> Iterator[Finding]:
    yield from members_for_codes("NKI2012", call, site)


HOOKS = Hooks(nodes=(ast.Call,), check=_check)
