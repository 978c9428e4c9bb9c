"""A real browser for tests: the system's Chromium, without a screen."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import uvicorn
from playwright.sync_api import Browser, Page, sync_playwright

from holdfast import Holdfast
from holdfast.web.access import Role, Visitor
from holdfast.web.dashboard import dashboard
from tests.support.deadline import until
from tests.web.vendored import AXE

__all__ = ["axe_violations", "chromium", "overflow", "served", "serving"]

ANNA: Final = Visitor("anna", Role.ADMIN, payloads=True)


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser; without one the test fails."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        raise AssertionError("no Chromium on PATH: install it (Debian: apt install chromium)")
    with sync_playwright() as playwright:
        # Chromium refuses its sandbox to root, which tests in a container are.
        arguments = ["--no-sandbox"] if os.getuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=found, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def served(app: Holdfast, visitor: Visitor = ANNA) -> Iterator[str]:
    """The dashboard of an app behind a real server, at this address."""
    with serving(dashboard(app, access=lambda _: visitor)) as address:
        yield address


@contextmanager
def serving(asgi: Any) -> Iterator[str]:
    """Any ASGI app behind a real server, at this address."""
    config = uvicorn.Config(
        asgi,
        host="127.0.0.1",
        port=0,
        log_level="warning",
        lifespan="off",
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until(lambda: server.started, what="the server to start")
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(10)


def axe_violations(page: Page) -> list[str]:
    """What axe-core finds wrong with a page, as it stands."""
    # The page's policy lets nothing in; the debugger is no part of the page.
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{each['id']}: {node['target']} {node['failureSummary']}"
        for each in found["violations"]
        for node in each["nodes"]
    ]


def overflow(page: Page) -> int:
    """By how many pixels a page is wider than its window."""
    width: int = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return width
