"""Segment ids as sequence_bounds is called with them."""

from __future__ import annotations

from typing import Any

import numpy as np


def with_sorted_segments(module: Any, segment_ids: Any) -> Any:
    """A segment is a run: the random ids are sorted first."""
    return module.nki_sequence_bounds(segment_ids=np.sort(segment_ids, axis=1))
