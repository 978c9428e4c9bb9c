"""A client of the web app, in this process: requests as a browser or a program sends them."""

from __future__ import annotations

import asyncio
from typing import Any, Self

import httpx
from starlette.types import ASGIApp

__all__ = ["WebClient"]


class WebClient:
    """Sends requests to an ASGI app, one after the other; cookies are kept."""

    def __init__(self, app: ASGIApp, base: str = "http://localhost", **headers: str) -> None:
        self._runner = asyncio.Runner()
        transport = httpx.ASGITransport(app=app, client=("127.0.0.1", 50_000))
        self._client = httpx.AsyncClient(transport=transport, base_url=base, headers=headers)

    def send(self, method: str, path: str, **given: Any) -> httpx.Response:
        return self._runner.run(self._client.request(method, path, **given))

    def get(self, path: str, **given: Any) -> httpx.Response:
        return self.send("GET", path, **given)

    def post(self, path: str, **given: Any) -> httpx.Response:
        return self.send("POST", path, **given)

    @property
    def cookies(self) -> httpx.Cookies:
        return self._client.cookies

    def close(self) -> None:
        self._runner.run(self._client.aclose())
        self._runner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
