"""Names of tensors in 0.2: each has its own, and all of shared HBM but arguments and results one.

Equal names are one place on a device. An expression that makes a tensor again in every turn of a
loop gives it its name again: no document says whether that is another tensor, so it is let pass,
but for two results of one name: they would be one place.
"""

from __future__ import annotations

from collections.abc import Iterable

from neuroncore.checks._tensors import described
from neuroncore.checks.findings import Finding, Report
from neuroncore.engines import Space
from neuroncore.launch import RUNNING
from neuroncore.memory import Storage, View

RULE = "NKI 0.2: tensors, names are unique per core and required in shared HBM"


class Names:
    """Follows the names of a launch's tensors; says at its end what 0.2 does not take."""

    def __init__(self) -> None:
        self._named: dict[tuple[object, str], Storage] = {}
        self._found: list[Finding] = []
        self._unnamed: dict[int, Storage] = {}

    def made(self, storage: Storage) -> None:
        """A tensor of the kernel."""
        launch = RUNNING.get()
        if launch is None or not storage.fresh or storage.constant:
            return
        if not storage.name:
            if storage.space is Space.shared_hbm:
                self._unnamed[id(storage)] = storage
            return
        first = self._named.setdefault((launch.program, storage.name), storage)
        if first.place != storage.place:
            what = f"a second tensor is called {storage.name!r}"
            self._found.append(_finding(what, "another name", storage, first))

    def ended(self, results: Iterable[View], report: Report) -> None:
        """All programs have run; `results` need no name."""
        returned = {id(view.storage): view.storage for view in results}
        named: dict[str, Storage] = {}
        for storage in returned.values():
            first = named.setdefault(storage.name, storage)
            if storage.name and first is not storage and first.place == storage.place:
                what = f"a second result is called {storage.name!r}"
                self._found.append(_finding(what, "another name", storage, first))
        for number, storage in self._unnamed.items():
            if number not in returned:
                what = "a tensor in shared HBM that is no result has no name"
                self._found.append(_finding(what, "name=", storage, None))
        for finding in self._found:
            report.add(finding)


def _finding(what: str, expected: str, storage: Storage, first: Storage | None) -> Finding:
    notes = () if first is None else (f"the first is made at {first.place}",)
    return Finding(
        "device", what, storage.place, expected, described(storage),
        "give it a name of its own: nl.ndarray(…, name=…)", RULE, "name", notes=notes,
    )  # fmt: skip
