"""Arguments of calls whose parameter order changed between two versions.

After a parameter was inserted or moved, a positional argument means something else. The cure is
always the same: write the name before it (`nisa.f(dst, src, mode)` → `nisa.f(dst, src,
dge_mode=mode)`), which is right before and after the change.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from neuroncore.findings import Edit, Finding, Safety, Severity
from nki_migrate.rules.site import Site


def keyword(call: ast.Call, name: str) -> ast.keyword | None:
    """The keyword argument of that name."""
    return next((k for k in call.keywords if k.arg == name), None)


def has_unknown_arguments(call: ast.Call) -> bool:
    """Whether `*args` or `**kwargs` hide what is passed."""
    return any(isinstance(a, ast.Starred) for a in call.args) or keyword(call, None) is not None  # type: ignore[arg-type]


def is_device_call(call: ast.Call, site: Site, *names: str) -> bool:
    """Whether a call in kernel code is of one of these functions (canonical names)."""
    return site.canonical(call.func) in names and site.function_of(call) is not None


def name_arguments(call: ast.Call, site: Site, order: Sequence[str], first: int) -> list[Edit]:
    """Edits that write the names of all positional arguments from `first` on."""
    return [
        site.insert_before(argument, f"{order[i]}=")
        for i, argument in enumerate(call.args)
        if i >= first
    ]


Check = Callable[[ast.Call, Site], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Order:
    """A signature: its parameters in order, and which of them have no default."""

    parameters: tuple[str, ...]
    required: frozenset[str]

    @staticmethod
    def of(signature: str) -> Order:
        """From `"dst src mode= name="`: a trailing `=` marks a default."""
        words = signature.split()
        names = tuple(word.rstrip("=") for word in words)
        return Order(names, frozenset(word for word in words if not word.endswith("=")))

    def bind(self, call: ast.Call) -> dict[str, ast.expr] | None:
        """Parameter → argument as this signature reads the call; None when it does not fit."""
        if len(call.args) > len(self.parameters):
            return None
        bound = dict(zip(self.parameters, call.args, strict=False))
        for given in call.keywords:
            if given.arg not in self.parameters or given.arg in bound:
                return None
            bound[given.arg] = given.value
        return bound if self.required <= set(bound) else None


def moved_arguments(
    rule: str,
    function: str,
    old: Order,
    new: Order,
    fits: Callable[[dict[str, ast.expr], Site], bool | None],
    first: int = 2,
) -> Callable[[ast.Call, Site], Iterator[Finding]]:
    """A check for a function whose parameters changed places.

    A call that only the old signature can read is rewritten with names from the argument `first`
    on. Where both can, `fits(bound, site)` says whether the arguments suit the parameters that a
    signature binds them to (None: cannot tell); a call that stays ambiguous is manual.
    """

    def check(call: ast.Call, site: Site) -> Iterator[Finding]:
        if not is_device_call(call, site, function) or len(call.args) <= first:
            return
        if has_unknown_arguments(call):
            yield _ambiguous(rule, call, site, function, "it passes *args or **kwargs")
            return
        is_old = _reads_as_old(call, site, old, new, fits)
        if is_old is None:
            yield _ambiguous(rule, call, site, function, "old and new order both fit")
        elif is_old:
            named = ", ".join(old.parameters[first : len(call.args)])
            yield site.finding(
                rule,
                call,
                f"{function}: parameters changed places; name the arguments {named}",
                edits=name_arguments(call, site, old.parameters, first),
            )

    return check


def _reads_as_old(
    call: ast.Call,
    site: Site,
    old: Order,
    new: Order,
    fits: Callable[[dict[str, ast.expr], Site], bool | None],
) -> bool | None:
    as_old, as_new = old.bind(call), new.bind(call)
    if as_old is None or as_new is None:
        return as_old is not None
    old_fits, new_fits = fits(as_old, site), fits(as_new, site)
    if old_fits == new_fits:
        return None
    return bool(old_fits) or new_fits is False


def _ambiguous(rule: str, call: ast.Call, site: Site, function: str, why: str) -> Finding:
    return site.finding(
        rule,
        call,
        f"{function}: parameters changed places and {why}; name the arguments manually",
        severity=Severity.ERROR,
        safety=Safety.MANUAL,
        assumption="the call is written in the older order",
    )
