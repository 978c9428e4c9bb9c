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

__all__ = ["asked_again", "axe_violations", "chromium", "overflow", "served", "serving"]

_AXE: Final = AXE.read_text(encoding="utf-8")
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


def axe_violations(page: Page, *, dark: bool = False) -> list[str]:
    """What axe-core finds wrong with a page, as it stands; `dark`: and with its dark colours."""
    # The page's policy lets nothing in; the debugger is no part of the page.
    page.evaluate(_AXE)
    found = _violations(page, "{resultTypes: ['violations']}")
    if dark:
        # Nothing but colours depends on the theme.
        page.emulate_media(color_scheme="dark")
        found += [f"dark: {each}" for each in _violations(page, "{runOnly: ['color-contrast']}")]
        page.emulate_media(color_scheme="light")
    return found


def _violations(page: Page, options: str) -> list[str]:
    found = page.evaluate(f"axe.run(document, {options})")
    return [
        f"{each['id']}: {node['target']} {node['failureSummary']}"
        for each in found["violations"]
        for node in each["nodes"]
    ]


def asked_again(page: Page) -> None:
    """Let an open page ask again now, not in two seconds; its clock has been installed."""
    page.clock.fast_forward(2_100)


def overflow(page: Page) -> int:
    """By how many pixels a page is wider than its window."""
    width: int = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return width
