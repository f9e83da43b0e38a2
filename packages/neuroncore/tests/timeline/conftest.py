"""Timelines are played, unless a test asks for one that is cached."""

import pytest

from neuroncore.timeline.results import cache


@pytest.fixture(autouse=True)
def _nothing_was_played_before(monkeypatch):
    monkeypatch.setattr(cache, "_known", {})
    monkeypatch.setattr(cache, "_latencies", {})
