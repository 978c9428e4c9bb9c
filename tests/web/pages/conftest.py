"""Stores for pages."""

from __future__ import annotations

import pytest

from holdfast import Holdfast
from holdfast.web.pages import shared_reads
from tests.client.conftest import Hands
from tests.web.pages.zoo import Zoo, fill


@pytest.fixture(autouse=True)
def fresh_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shared reads are kept for two seconds, and tests ask again faster."""
    monkeypatch.setattr(shared_reads, "FRESH_S", 0.0)


@pytest.fixture
def zoo(app: Holdfast, hands: Hands) -> Zoo:
    """A task in each of the common states, and a worker."""
    return fill(app, hands)
