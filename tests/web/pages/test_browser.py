"""The dashboard in a real browser: what can be done with mouse and keyboard, that nothing of tasks
runs there, that nothing jumps, and that everybody can read it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, Page, expect

from holdfast import Holdfast, TaskStatus, Workflow
from holdfast.core.records import WorkerState
from holdfast.store.verbs import evidence, workers
from tests.client.conftest import Hands
from tests.support.postgres import PostgresServer
from tests.web.pages.browser import asked_again, axe_violations, chromium, overflow, served
from tests.web.pages.zoo import SCHEDULE, WORKER, Zoo, fill

pytestmark = pytest.mark.timeout(180)
S = TaskStatus
PATHS = (
    "/", "/tasks", "/queues", "/queues/default", "/workers", f"/workers/{WORKER}", "/dead-letters",
    "/audit", "/send", "/tasks/bulk/resubmit", "/workflows", "/schedules", f"/schedules/{SCHEDULE}",
)  # fmt: skip


@dataclass(frozen=True)
class Scene:
    """A small store, served."""

    app: Holdfast
    hands: Hands
    zoo: Zoo
    address: str


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def databases(postgres_server: PostgresServer) -> Iterator[Callable[[str], str]]:
    """Makes databases, by the name of the engine, and drops them."""
    made: list[str] = []
    with tempfile.TemporaryDirectory(prefix="holdfast-pages-") as folder:

        def make(engine: str) -> str:
            if engine == "postgresql":
                made.append(postgres_server.create_database())
                return made[-1]
            return f"sqlite:///{folder}/{uuid4().hex}.db"

        yield make
        for url in made:
            postgres_server.drop_database(url)


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)]
)
def scene(request: pytest.FixtureRequest, databases: Callable[[str], str]) -> Iterator[Scene]:
    with Holdfast(databases(request.param)) as app:
        hands = Hands(app)
        zoo = fill(app, hands)
        snapshot(hands)
        with served(app) as address:
            yield Scene(app, hands, zoo, address)


def snapshot(hands: Hands) -> None:
    """What the worker of the zoo says of itself."""
    state = WorkerState(
        worker_id=WORKER, snapshot_at=0, hostname="host-1", pid=7, processes=4,
        queues='["default"]', tasks_running=3, tasks_claimed=1, memory_usage_mb=412.0,
        memory_percent=1.0, cpu_percent=88.0, worker_started_at=1,
    )  # fmt: skip
    hands.run(workers.snapshot(state))


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    opened = context.new_page()
    # It goes on as usual; `asked_again` lets it jump.
    opened.clock.install()
    wrong: list[str] = []
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("dialog", lambda dialog: wrong.append(f"a dialog: {dialog.message}"))
    opened.on(
        "console",
        lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None,
    )
    yield opened
    context.close()
    # Requests that are refused on purpose are errors of the console, too.
    assert [each for each in wrong if "the server responded with a status of" not in each] == []


def test_every_page_can_be_read_by_everybody(browser: Browser, scene: Scene) -> None:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    wrong: dict[str, list[str]] = {}
    zoo = scene.zoo
    tasks = [f"/tasks/{each.id}" for each in (zoo.done, zoo.failed, zoo.running, zoo.pending)]
    for path in (*PATHS, *tasks, f"/workflows/{zoo.workflow.id}", "/nothing-here"):
        page.goto(scene.address + path)
        if found := axe_violations(page, dark=True):
            wrong[path] = found
    page.set_viewport_size({"width": 390, "height": 844})
    for path in ("/", "/tasks", tasks[1]):
        page.goto(scene.address + path)
        if found := axe_violations(page):
            wrong[f"{path} at 390"] = found
    context.close()
    assert wrong == {}


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
@pytest.mark.parametrize(
    "size", ["empty", "small", pytest.param("large", marks=[pytest.mark.slow])]
)
def test_every_page_of_every_store(
    page: Page, databases: Callable[[str], str], engine: str, size: str
) -> None:
    paths = [path for path in PATHS if size != "empty" or path.count("/") == 1]
    with Holdfast(databases(engine)) as app:
        hands = Hands(app)
        if size != "empty":
            zoo = fill(app, hands)
            snapshot(hands)
            paths += [f"/tasks/{handle.id}" for handle in zoo.all]
            paths.append(f"/workflows/{zoo.workflow.id}")
        for start in range(0, 200_000 if size == "large" else 0, 10_000):
            app.named("large.task").send_many([(start + n,) for n in range(10_000)])
        wrong = []
        with served(app) as address:
            for path in paths:
                answer = page.goto(address + path)
                if answer is None or answer.status != 200:
                    wrong.append(f"{path}: {answer and answer.status}")
                for width in (1440, 1024, 390):
                    page.set_viewport_size({"width": width, "height": 844})
                    if overflow(page) > 0:
                        wrong.append(f"{path} at {width} is {overflow(page)} too wide")
                if "owned" in page.title():
                    wrong.append(f"{path} ran what a task has sent")
    assert wrong == []


def test_names_have_room_at_every_width(page: Page, scene: Scene) -> None:
    scene.app.control.schedules.run_now(SCHEDULE)
    wanted = {"/tasks": ("Name", 120), f"/schedules/{SCHEDULE}": ("Because", 120)}
    narrow = []
    for path, (column, least) in wanted.items():
        page.goto(scene.address + path)
        for width in (1440, 1401, 1321, 1280, 1181, 1101, 1024, 961):
            page.set_viewport_size({"width": width, "height": 844})
            box = page.get_by_role("columnheader", name=column).bounding_box()
            if box is None or box["width"] < least:
                narrow.append(f"{column} at {width}: {box}")
    assert narrow == []


def test_filter_open_cancel_resubmit_with_the_keyboard_only(page: Page, scene: Scene) -> None:
    handle = scene.app.send("keys.only")
    page.goto(f"{scene.address}/tasks")
    page.keyboard.press("f")
    expect(page.locator("details.adder input[name=text]")).to_be_focused()
    page.keyboard.type("keys.only")
    page.keyboard.press("Enter")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("html.has-js")).to_be_attached()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("keys.only")
    expect(page.locator("html.has-js")).to_be_attached()
    page.keyboard.press("c")
    expect(page.locator("dialog#cancel button").first).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("main .note")).to_contain_text("Cancelled")
    expect(page.locator("html.has-js")).to_be_attached()
    assert handle.status() is S.CANCELLED
    page.keyboard.press("r")
    page.locator("dialog#resubmit button.primary").press("Enter")
    expect(page.locator("main .note")).to_contain_text("Resubmitted")
    expect(page.locator("html.has-js")).to_be_attached()
    assert handle.status() is S.PENDING
    page.keyboard.press("?")
    expect(page.locator("dialog#keys")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("q")
    expect(page.locator("h1")).to_have_text("Queues")
    expect(page.locator("html.has-js")).to_be_attached()
    page.keyboard.press("/")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.type(str(handle.id))
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("keys.only")


def test_select_rows_and_act_on_them(page: Page, scene: Scene) -> None:
    handles = scene.app.named("rows.some").send_many([(n,) for n in range(3)])
    page.goto(f"{scene.address}/tasks?name=rows.some")
    expect(page.locator(".bulk")).to_be_hidden()
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.locator("[data-selected]")).to_have_text("2")
    page.locator(".bulk").get_by_role("button", name="Cancel").click()
    expect(page.locator("#ask-t")).to_have_text("Cancel 2 tasks?")
    page.get_by_role("button", name="Cancel 2").click()
    expect(page.locator("main .note")).to_contain_text("Cancelled 2 tasks")
    assert sorted(each.status().value for each in handles) == ["CANCELLED", "CANCELLED", "PENDING"]


def test_an_action_on_a_filter_goes_on_by_itself(
    page: Page, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.web.pages.bulk.BATCH", 20)
    scene.app.named("many.rows").send_many([(n,) for n in range(70)])
    page.goto(f"{scene.address}/tasks?name=many.rows")
    page.locator("footer").get_by_role("link", name="Cancel").click()
    page.get_by_label("Rate").select_option("50")
    page.get_by_role("button", name="Cancel 70").click()
    for done in (20, 40, 60):
        expect(page.locator("main .note")).to_contain_text(f"{done} done", timeout=15_000)
        # Nothing else asks again meanwhile: this is no page that has an address.
        asked_again(page)
    expect(page.locator("main .note")).to_contain_text("Cancelled 70 tasks", timeout=15_000)


def test_watch_a_workflow_and_run_a_schedule(page: Page, scene: Scene) -> None:
    wf = Workflow("watched")
    first = wf.step(scene.app.named("watched.first").options(queue="watched"))
    wf.options(after=[first]).step(scene.app.named("watched.second").options(queue="watched"))
    handle = wf.send()
    page.goto(f"{scene.address}/workflows/{handle.id}")
    expect(page.locator(".dag a.pending")).to_have_count(1)
    for step in handle.steps():
        scene.hands.complete(scene.hands.take(step), "null")
    asked_again(page)
    expect(page.locator("h1 + .st")).to_have_text("Completed", timeout=10_000)
    expect(page.locator(".dag a.completed")).to_have_count(2)
    page.goto(f"{scene.address}/schedules/{SCHEDULE}")
    page.get_by_role("button", name="Run now…").click()
    page.locator("dialog#run-now").get_by_role("button", name="Run now").click()
    expect(page.locator("h1")).to_have_text("shop.done")


@pytest.mark.parametrize("width", [1440, 390])
def test_pause_a_queue(page: Page, scene: Scene, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(f"{scene.address}/queues/later")
    page.get_by_role("button", name="Pause…").click()
    page.get_by_role("button", name="Pause queue").click()
    expect(page.locator("h1 + .st")).to_have_text("Paused")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("h1 + .st")).to_have_count(0)


def test_a_page_follows_its_task_and_nothing_jumps(page: Page, scene: Scene) -> None:
    handle = scene.app.options(queue="live").send("live.task")
    page.goto(f"{scene.address}/tasks/{handle.id}")
    place = page.locator(".track").bounding_box()
    age = page.locator("dl.facts time").first
    assert (age.get_attribute("title") or "").endswith(" UTC")
    running = scene.hands.take(handle)
    asked_again(page)
    expect(page.locator("h1 + .st")).to_have_text("In progress", timeout=10_000)
    assert page.locator(".track").bounding_box() == place
    piece = evidence.LogPart(running.key, running.token, 1, 0, b"INFO it begins\n")
    scene.hands.run(evidence.append_logs([piece]))
    asked_again(page)
    expect(page.locator(".log")).to_contain_text("it begins", timeout=10_000)
    page.keyboard.press("p")
    expect(page.locator("#live")).to_have_text("Held")
    scene.hands.complete(running, '"done"')
    page.keyboard.press("p")
    expect(page.locator("h1 + .st")).to_have_text("Completed", timeout=10_000)


def test_new_rows_wait_and_what_is_ticked_stays(page: Page, scene: Scene) -> None:
    scene.app.named("wait.rows").send_many([(n,) for n in range(3)])
    page.goto(f"{scene.address}/tasks?name=wait.rows")
    first = page.locator("tbody tr").first
    box = first.bounding_box()
    first.locator("input").check()
    handle = scene.app.send("wait.rows", "new")
    asked_again(page)
    expect(page.locator(".fresh")).to_have_text("Show 1 newer", timeout=10_000)
    assert page.locator("tbody tr").count() == 3
    assert first.locator("input").is_checked()
    moved = first.bounding_box()
    assert box is not None
    assert moved is not None
    # Only by the line that says so.
    assert moved["y"] - box["y"] <= 34
    page.locator(".fresh").click()
    expect(page.locator(f"[id='t-{handle.id}']")).to_be_visible()


def test_charts_are_read_with_pointer_and_keys(page: Page, scene: Scene) -> None:
    page.goto(f"{scene.address}/workers/{WORKER}")
    plot = page.locator("#chart-busy .plot")
    plot.focus()
    page.keyboard.press("End")
    said = page.locator("#chart-busy .said")
    expect(said).to_contain_text("UTC")
    # The last minutes may be too young to have a snapshot.
    for _ in range(5):
        if "at most" in (said.text_content() or ""):
            break
        page.keyboard.press("ArrowLeft")
    expect(said).to_contain_text("UTC · at most")
    at = (said.text_content() or "").partition(" UTC")[0]
    # Every chart says the same moment, and goes on doing so when the page is brought up to date.
    expect(page.locator(".plot .said")).to_have_count(3)
    expect(page.locator("#chart-cpu .said")).to_contain_text(at)
    page.keyboard.press("ArrowLeft")
    expect(said).not_to_contain_text(at)
    page.evaluate("document.dispatchEvent(new Event('holdfast:changed'))")
    expect(said).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".said")).to_have_count(0)
    plot.hover(position={"x": 40, "y": 40})
    expect(said).to_be_visible()
    plot.dblclick(position={"x": 40, "y": 40})
    expect(page.locator(".seg [aria-current=true]")).to_have_text("15m")
    page.get_by_role("link", name="Now").click()
    expect(page.get_by_role("link", name="Later")).to_have_count(0)


def test_it_can_be_read_without_scripts(browser: Browser, scene: Scene) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{scene.address}/tasks?name=shop.fail")
    page.locator("tbody").get_by_role("link", name="shop.fail").click()
    expect(page.locator(".err").first).to_contain_text("NO_ROOM")
    context.close()


def test_the_theme_is_chosen(page: Page, scene: Scene) -> None:
    page.goto(f"{scene.address}/tasks")
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.locator("body")).to_have_css("background-color", "rgb(14, 16, 18)")
