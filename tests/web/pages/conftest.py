"""Stores for pages."""

from __future__ import annotations

import pytest

from holdfast import Holdfast
from holdfast.web.pages import navigation
from tests.client.conftest import Hands
from tests.web.pages.zoo import Zoo, fill


@pytest.fixture(autouse=True)
def fresh_navigation() -> None:
    """Its numbers are kept for two seconds, and tests follow one another faster."""
    navigation._cached.clear()


@pytest.fixture
def zoo(app: Holdfast, hands: Hands) -> Zoo:
    """A task in each of the common states, and a worker."""
    return fill(app, hands)
