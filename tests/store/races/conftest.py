"""A stage on each engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.store.races.stage import Stage
from tests.support.stores import Kind, Labs


@pytest.fixture(params=[Kind.SQLITE_FILE, Kind.POSTGRES])
def stage(request: pytest.FixtureRequest, labs: Labs) -> Iterator[Stage]:
    """For races on both engines: two connections at least."""
    with ExitStack() as closing:
        yield Stage(closing.enter_context(labs.open(request.param)), closing)
