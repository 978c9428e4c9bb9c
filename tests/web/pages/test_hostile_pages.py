"""Pages of rows that are full of hostile texts, in a real browser: nothing of them runs, the layout
holds, everybody can read it, and no page fails."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from holdfast import Holdfast
from holdfast.store.verbs import evidence
from holdfast.web.pages import task_list
from tests.client.conftest import Hands
from tests.web.pages.browser import axe_violations, chromium, overflow, served
from tests.web.pages.hostile_texts import TEXTS, besiege
from tests.web.pages.zoo import WORKER, fill

pytestmark = pytest.mark.timeout(180)
LISTS = (
    "/", "/tasks", "/queues", "/workers", "/dead-letters", "/audit", "/workflows", "/schedules",
    "/send",
)  # fmt: skip
_LED = re.compile(r"^/(tasks|queues|workers|workflows|schedules)/[^/?#]+$")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path = tmp_path_factory.mktemp("hostile") / "tasks.db"
    with Holdfast(f"sqlite:///{path}") as app:
        lively(app)
        assert besiege(path) > 60
        with served(app) as found:
            yield found


def lively(app: Holdfast) -> None:
    """A store with something in every column that is shown."""
    hands = Hands(app)
    zoo = fill(app, hands)
    app.named("many").send_many([(text,) for text in TEXTS])
    task = hands.take(app.options(queue="logs").send("shop.log"))
    hands.run(evidence.append_logs([evidence.LogPart(task.key, task.token, 1, 0, b"x")]))
    note = evidence.TaskNote(task.key, task.token, stage="s", meta="{}", output="o")
    hands.run(evidence.write_notes([note]))
    hands.run(evidence.write_checkpoint(task.key, task.token, "point", '["x"]'))
    app.control.queues.pause("later", by="anna")
    app.control.workers.drain(WORKER)
    app.control.workflows.pause(zoo.workflow.id, by="anna")
    with app.control.acting(by="anna", origin="web", filter="name x"):
        app.control.tasks.cancel(zoo.pending.id)


def links(page: Page) -> list[str]:
    """Where a page leads to: tasks, queues and the like, each once."""
    hrefs = page.eval_on_selector_all("main a[href]", "all => all.map(a => a.getAttribute('href'))")
    return sorted({href for href in hrefs if _LED.match(href)})


def test_nothing_runs_and_the_layout_holds(browser: Browser, address: str, tmp_path: Path) -> None:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    wrong: list[str] = []
    page.on("dialog", lambda dialog: wrong.append(f"a dialog: {dialog.message}"))
    page.on("pageerror", lambda error: wrong.append(f"{page.url}: {error}"))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    found = list(LISTS)
    for path in LISTS:
        page.goto(address + path)
        found += [link for link in links(page) if link not in found]
    assert len(found) > 30
    for path in found:
        answer = page.goto(address + path)
        assert answer is not None
        # A name with a slash in it leads nowhere; nothing may fail.
        assert answer.status < 500, path
        if not page.title().endswith("· Holdfast") or page.title().startswith("owned"):
            wrong.append(f"{path} has the title {page.title()!r}")
        for width in (1440, 1024, 390):
            page.set_viewport_size({"width": width, "height": 844})
            if overflow(page) > 0:
                wrong.append(f"{path} at {width} is {overflow(page)} too wide")
        text = page.locator("body").inner_text()
        assert not set("\u202e\u2066\u200f\x1b\x07") & set(text), path
    context.close()
    refused = "the server responded with a status of 404"
    assert [each for each in wrong if refused not in each] == []


@pytest.mark.slow
def test_everybody_can_read_it(
    browser: Browser, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What costs is the number of rows; each looks like the others.
    monkeypatch.setattr(task_list, "PAGE", 15)
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    wrong: dict[str, list[str]] = {}
    page.goto(f"{address}/tasks")
    tasks = [link for link in links(page) if link.startswith("/tasks/")][:3]
    for path in (*LISTS, *tasks):
        page.goto(address + path)
        if found := axe_violations(page):
            wrong[path] = found
    context.close()
    assert wrong == {}
