"""How much memory this process has held."""

from __future__ import annotations

import sys


def peak_mb() -> float | None:
    """The largest resident size so far, in 10⁶ bytes; None where the system does not say."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6, 1)
