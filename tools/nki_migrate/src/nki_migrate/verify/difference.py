"""How far results may be apart, and how far they are: no NumPy, for what only reports them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What a case allows; all None means the default of `nki_migrate.verify.compare`."""

    rtol: float | None = None
    atol: float | None = None
    ulps: float | None = None

    @property
    def is_default(self) -> bool:
        """Whether the case names no tolerance at all."""
        return self.rtol is None and self.atol is None and self.ulps is None


@dataclass(frozen=True, slots=True)
class Difference:
    """How far an array is from what was expected; `why` is set when it is not equal."""

    max_error: float
    max_ulps: float
    why: str | None = None

    @property
    def is_equal(self) -> bool:
        """Whether every element is within the tolerance."""
        return self.why is None
