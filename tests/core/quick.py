"""Few examples per property: the core's tests are run after every change, in two seconds."""

from __future__ import annotations

from hypothesis import settings

quick = settings(max_examples=25, deadline=None)
