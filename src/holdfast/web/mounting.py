"""Putting the dashboard beside another ASGI app that cannot mount one itself: Django's.

Owns the choice by path. Frameworks that mount apps (Starlette, FastAPI) need nothing of this.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.core.errors import ConfigError

__all__ = ["mounted"]


def mounted(path: str, app: ASGIApp, *, beside: ASGIApp) -> ASGIApp:
    """An ASGI app that gives requests below a path to one app, and all others to the other."""
    if not path.startswith("/") or path.endswith("/"):
        raise ConfigError(f"path={path!r} must begin with a slash, and not end with one: '/tasks'")

    async def chosen(scope: Scope, receive: Receive, send: Send) -> None:
        root = scope.get("root_path", "")
        inner = scope.get("path", "").removeprefix(root)
        if scope["type"] == "lifespan" or not (inner == path or inner.startswith(f"{path}/")):
            await beside(scope, receive, send)
            return
        await app({**scope, "root_path": root + path}, receive, send)

    return chosen
