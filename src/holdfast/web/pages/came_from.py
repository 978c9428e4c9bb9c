"""Where a visitor came from, if that is a page of ours: for the way back.

Owns the reading of Referer, which may be anything. It never leads to another site.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.requests import Request

__all__ = ["came_from"]


def came_from(request: Request) -> str | None:
    """The path and the query of a page of this host; None: from elsewhere, or not known."""
    try:
        came = urlsplit(request.headers.get("referer", ""))
    except ValueError:
        return None
    if came.netloc != request.headers.get("host") or not came.path.startswith("/"):
        return None
    # A browser takes two slashes at the beginning, of either kind, for another host.
    path = "/" + came.path.lstrip("/\\")
    return f"{path}?{came.query}" if came.query else path
