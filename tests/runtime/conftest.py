"""Children for tests, see `tests.support.nursery`; and stores, see `tests.support.stores`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.nursery import Kid, Nursery
from tests.support.stores import lab, labs

__all__ = ["lab", "labs"]

PLAIN = "tests.runtime.apps.plain:app"


@pytest.fixture(scope="module")
def plain() -> Iterator[Nursery]:
    """The template of the plain application; each test forks what it needs."""
    with Nursery(PLAIN) as nursery:
        nursery.manifest()
        yield nursery


@pytest.fixture
def kid(plain: Nursery) -> Kid:
    """A process child of the plain application."""
    return plain.fork("process")
