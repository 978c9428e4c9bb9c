"""Sites on both engines."""

from __future__ import annotations

from tests.support.sites import engine, fresh_site, make_site

__all__ = ["engine", "fresh_site", "make_site"]
