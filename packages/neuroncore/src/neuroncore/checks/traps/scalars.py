"""HW55: arithmetic of scalars that leaves their 32 bits."""

from __future__ import annotations

from neuroncore.checks.traps.detector import Detector
from neuroncore.findings import Severity
from neuroncore.source_location import Place
from nki_dtypes import DType


class Scalars(Detector):
    """Reports results of scalars that wrap."""

    def wrapped(self, dtype: DType, place: Place | None) -> None:
        self.found(
            "HW55", f"the result of scalars does not fit {dtype}", place,
            severity=Severity.WARNING, expected=f"a value of {dtype}",
            got="the value modulo 2**32",
        )  # fmt: skip


DETECTOR = Scalars
