"""Pages of a mounted dashboard in a real browser: links, files, live updates and actions stay below
its path, in FastAPI, Starlette, Django and Flask."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect
from starlette.types import ASGIApp

from holdfast import Holdfast, TaskStatus
from holdfast.web import dashboard
from tests.web.conftest import ADMIN
from tests.web.pages.browser import asked_again, chromium, serving
from tests.web.test_mounting import PREFIX, in_django, in_fastapi, in_starlette

pytestmark = pytest.mark.timeout(120)


@contextmanager
def in_flask(app: ASGIApp) -> Iterator[str]:
    from a2wsgi import ASGIMiddleware
    from flask import Flask
    from werkzeug.middleware.dispatcher import DispatcherMiddleware
    from werkzeug.serving import make_server

    outer = Flask(__name__)
    inner: Any = ASGIMiddleware(app)  # type: ignore[arg-type]
    server = make_server(
        "127.0.0.1", 0, DispatcherMiddleware(outer.wsgi_app, {PREFIX: inner}), threaded=True
    )
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


def behind(mount: Callable[[ASGIApp], ASGIApp]) -> Callable[[ASGIApp], AbstractContextManager[str]]:
    return lambda app: serving(mount(app))


SERVERS: dict[str, Callable[[ASGIApp], AbstractContextManager[str]]] = {
    "starlette": behind(in_starlette),
    "fastapi": behind(in_fastapi),
    "django": behind(in_django),
    "flask": in_flask,
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.mark.parametrize(
    "name",
    [
        # Starlette stands for FastAPI, which is made of it, and Flask for what is no ASGI.
        pytest.param(name, marks=[pytest.mark.slow] if name == "fastapi" else [])
        for name in SERVERS
    ],
)
def test_a_mounted_dashboard_works(name: str, browser: Browser, tmp_path: Path) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.clock.install()
    wrong: list[str] = []
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on(
        "response",
        lambda answer: None if PREFIX in answer.url else wrong.append(f"outside: {answer.url}"),
    )
    with Holdfast(f"sqlite:///{tmp_path / 'tasks.db'}") as app:
        handle = app.send("some.task")
        with SERVERS[name](dashboard(app, access=lambda _: ADMIN)) as address:
            page.goto(f"{address}{PREFIX}/tasks")
            # The style sheet and the script have come.
            expect(page.locator("html.has-js")).to_be_attached()
            expect(page.locator("body")).to_have_css("margin", "0px")
            page.get_by_role("link", name="some.task").first.click()
            expect(page.locator("h1")).to_have_text("some.task")
            expect(page.locator("html.has-js")).to_be_attached()
            page.keyboard.press("c")
            page.locator("dialog#cancel").get_by_role("button", name="Cancel task").click()
            expect(page.locator("main .note")).to_contain_text("Cancelled")
            assert handle.status() is TaskStatus.CANCELLED
            expect(page.locator("html.has-js")).to_be_attached()
            page.keyboard.press("g")
            page.keyboard.press("t")
            expect(page.locator("h1")).to_have_text("Tasks")
            expect(page.locator("html.has-js")).to_be_attached()
            app.send("some.more")
            asked_again(page)
            expect(page.locator(".fresh")).to_have_text("Show 1 newer", timeout=10_000)
            page.get_by_role("button", name="Dark").click()
            expect(page.locator("html")).to_have_attribute("data-theme", "dark")
            page.goto("about:blank")
    context.close()
    assert wrong == []
