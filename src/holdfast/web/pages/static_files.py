"""Stylesheet, scripts and icon: what lies in `web/static`, and nothing else.

They are kept in memory and never change while a process lives. Browsers keep them, and ask each
time whether they still hold, so that an upgrade is seen at once.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from starlette.responses import Response

from holdfast.web.context import Context
from holdfast.web.problem import Refusal
from holdfast.web.route import WebRoute

__all__ = ["ROUTES", "StaticFile", "static_files"]

KINDS: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class StaticFile:
    """One file as it is answered."""

    kind: str
    tag: str
    data: bytes


@lru_cache(maxsize=1)
def static_files() -> dict[str, StaticFile]:
    """Every file, by its path below `web/static`."""
    return dict(_below(files("holdfast.web") / "static", ""))


def _below(folder: Traversable, path: str) -> list[tuple[str, StaticFile]]:
    found: list[tuple[str, StaticFile]] = []
    for each in folder.iterdir():
        name = f"{path}{each.name}"
        kind = KINDS.get(f".{each.name.rpartition('.')[2]}")
        if each.is_dir():
            found += _below(each, f"{name}/")
        elif kind is not None:
            data = each.read_bytes()
            found.append((name, StaticFile(kind, f'"{hashlib.sha256(data).hexdigest()}"', data)))
    return found


async def serve(context: Context) -> Response:
    """One of them."""
    path: str = context.request.path_params["path"]
    file = static_files().get(path)
    if file is None:
        raise Refusal(404, "not_found", f"there is no file {path!r:.100} here")
    headers = {"etag": file.tag, "cache-control": "no-cache", "content-type": file.kind}
    if context.request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.data, headers=headers)


ROUTES: Final = (
    WebRoute("/static/{path:path}", ("GET",), serve, needs=None, name="static", kind="page"),
)
