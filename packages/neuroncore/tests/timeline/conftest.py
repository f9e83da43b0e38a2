"""Timelines are played, unless a test asks for one that is remembered."""

import pytest

from neuroncore.timeline import remembered


@pytest.fixture(autouse=True)
def _nothing_was_played_before(monkeypatch):
    monkeypatch.setattr(remembered, "_known", {})
    monkeypatch.setattr(remembered, "_prices", {})
