"""Constants in a file: the ones of costs.json with some changed, for one user's device."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from neuroncore.documents import parse_json
from neuroncore.errors import AttributeValueError, KernelError, OptionError
from neuroncore.targets import resolve_target
from neuroncore.timeline.model.constants import ALL, Constants, constants
from neuroncore.work import costs

_EXPECTED = '{"constants": {"DMA_START": {"trn2": 800}}}'


def read_constants(file: str | Path) -> Constants:
    """The constants of costs.json, replaced by the ones that a file has.

    Raises OptionError for a file that is not one, with what is wrong with it, and for a value that
    is far from all that is known of its constant.
    """
    try:
        text = Path(file).read_text(encoding="utf-8")
        found = parse_json(text, _without_repeats)["constants"]
        changed = constants()
        for name, by_target in found.items():
            for target, value in _by_target(name, by_target).items():
                changed = changed.but(name, target, value)
    except OSError as wrong:
        raise _error(file, wrong.strerror or "it cannot be read") from None
    except KernelError as wrong:
        raise _error(file, wrong.what) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _error(file, "it does not hold constants") from None
    for what in changed.implausible().values():
        raise OptionError(
            f"{file}: {what}",
            hint=f"Constants.but tries any value of {what.split()[0]} in a program",
        )
    return changed


def _by_target(name: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The values by a generation's first name, the one of all generations ahead of the others."""
    names = [(t if t == ALL else resolve_target(t).name, value) for t, value in given.items()]
    return dict(sorted(_without_repeats(names, f"{name} on ").items(), key=lambda v: v[0] != ALL))


def constants_text(changed: Constants, about: str) -> str:
    """A file that `read_constants` reads: what differs from costs.json.

    Raises AttributeValueError for a value that is far from all that is known of its constant.
    """
    for what in changed.implausible().values():
        raise AttributeValueError(what, hint="what it was fitted to is of something else")
    first = constants().values
    by_name = {
        name: {target: value for target, value in by.items() if first[name].get(target) != value}
        for name, by in changed.values.items()
    }
    found = {"about": about, "costs": costs()["dated"], "constants": {}}
    found["constants"] = {name: by for name, by in by_name.items() if by}
    return json.dumps(found, indent=2) + "\n"


def _without_repeats(pairs: Iterable[tuple[str, Any]], of: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if repr(found.setdefault(name, value)) != repr(value):
            raise AttributeValueError(f"{of}{name} has two values, {found[name]} and {value}")
    return found


def _error(file: str | Path, what: str) -> OptionError:
    return OptionError(
        f"{file}: {what}",
        expected=f"constants of the timeline, such as {_EXPECTED}",
        hint="nki-run --profile PROFILE --constants FILE writes one",
    )
