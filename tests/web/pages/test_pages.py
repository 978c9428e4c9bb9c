"""Every page: with nothing stored and with something, what it costs, and what it never shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from holdfast import Holdfast
from holdfast.core.identity import new_id
from holdfast.core.options.policy import Policy
from holdfast.core.outcome import Failed
from holdfast.core.result import TaskError
from holdfast.store.verbs import claims, submit, workers
from holdfast.web import dashboard
from holdfast.web.access import Role, Visitor
from holdfast.web.dashboard import STATEMENT_TIMEOUT
from tests.client.conftest import Hands
from tests.support.verbs import submission
from tests.web.client import WebClient
from tests.web.pages.budget import asked
from tests.web.pages.zoo import SCHEDULE, WORKER, Zoo

PAGES = (
    "/", "/tasks", "/queues", "/workers", "/dead-letters", "/audit", "/send",
    "/workflows", "/schedules",
    "/tasks/bulk/resubmit", "/tasks/bulk/cancel", "/tasks/bulk/delete",
)  # fmt: skip
BUDGETS = {
    # page: (statements, rows), with the navigation's own, of a small store
    "/": (38, 100),
    "/tasks": (22, 100),
    "/tasks/{id}": (30, 100),
    "/workflows": (20, 60),
    "/workflows/{workflow}": (28, 80),
    "/schedules": (20, 60),
    f"/schedules/{SCHEDULE}": (20, 60),
    "/queues": (28, 100),
    "/queues/default": (34, 100),
    "/workers": (16, 60),
    f"/workers/{WORKER}": (24, 100),
    "/dead-letters": (22, 80),
    "/audit": (18, 80),
}


@pytest.mark.parametrize("path", PAGES)
def test_a_page_of_an_empty_store(path: str, admin: WebClient) -> None:
    answer = admin.get(path)
    assert answer.status_code == 200
    assert "<h1" in answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"


@pytest.mark.parametrize(
    "path",
    [*PAGES, "/queues/default", "/queues/later", f"/workers/{WORKER}", f"/schedules/{SCHEDULE}"],
)
def test_a_page_of_a_small_store(path: str, zoo: Zoo, admin: WebClient) -> None:
    answer = admin.get(path)
    assert answer.status_code == 200
    check_markup(answer.text)


class Markup(HTMLParser):
    """Collects what would run."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.runs += [name for name in given if name.startswith("on") or name == "style"]
        if tag in ("img", "iframe", "style") or (tag == "script" and not given.get("src")):
            self.runs.append(tag)


def check_markup(text: str) -> None:
    """Nothing runs: no markup of tasks, nothing inline, no text that turns the direction."""
    parser = Markup()
    parser.feed(text)
    assert parser.runs == []
    assert "\u202e" not in text
    assert "hunter2" not in text


def test_each_task_has_a_page(zoo: Zoo, admin: WebClient) -> None:
    for handle in zoo.all:
        answer = admin.get(f"/tasks/{handle.id}")
        assert answer.status_code == 200
        check_markup(answer.text)
    failed = admin.get(f"/tasks/{zoo.failed.id}").text
    assert "NO_ROOM" in failed
    assert "&lt;script&gt;" in failed
    assert "\\u202egnp" in failed
    assert "order:7" in failed


@pytest.mark.parametrize("path", BUDGETS)
def test_what_a_page_costs(path: str, zoo: Zoo, admin: WebClient) -> None:
    statements, rows = BUDGETS[path]
    with asked() as seen:
        path = path.replace("{id}", str(zoo.failed.id))
        path = path.replace("{workflow}", str(zoo.workflow.id))
        assert admin.get(path).status_code == 200
    assert len(seen.names) <= statements, seen.names
    assert seen.rows <= rows, seen.rows


@pytest.mark.parametrize("path", [*BUDGETS, "/send", "/tasks/bulk/cancel", "/tasks/{id}/log"])
def test_no_statement_of_a_page_is_unbounded(path: str, zoo: Zoo, admin: WebClient) -> None:
    with asked() as seen:
        path = path.replace("{id}", str(zoo.failed.id))
        path = path.replace("{workflow}", str(zoo.workflow.id))
        assert admin.get(path).status_code == 200
    # The app's own connections have half a minute, or whatever it was given.
    assert seen.bounds == {STATEMENT_TIMEOUT}


def test_a_workflow_is_drawn_with_each_node_a_link(zoo: Zoo, admin: WebClient) -> None:
    assert str(zoo.workflow.id) in admin.get("/workflows").text
    text = admin.get(f"/workflows/{zoo.workflow.id}").text
    check_markup(text)
    (drawn,) = re.findall(r'<svg class="dag[ "].*?</svg>', text, re.DOTALL)
    linked = re.findall(r'<a href="/tasks/([0-9a-f-]+)"', drawn)
    assert sorted(linked) == sorted(str(step.id) for step in zoo.workflow.steps())
    assert drawn.count('class="edge') == 3
    verbs = set(re.findall(r'action="/workflows/[^"/]+/(\w+)"', text))
    assert verbs == {"pause", "cancel"}
    step = zoo.workflow.steps()[1]
    assert f'href="/workflows/{zoo.workflow.id}"' in admin.get(f"/tasks/{step.id}").text


def test_buttons_are_the_verbs_that_are_allowed_now(zoo: Zoo, admin: WebClient) -> None:
    def verbs(handle: object) -> set[str]:
        text = admin.get(f"/tasks/{handle.id}").text  # type: ignore[attr-defined]
        found = re.findall(r'action="/tasks/[^"/]+/(\w+)"', text)
        return set(found)

    assert verbs(zoo.done) == {"delete"}
    assert verbs(zoo.failed) == {"resubmit", "delete"}
    assert verbs(zoo.running) == {"cancel"}
    assert verbs(zoo.pending) == {"cancel", "reschedule"}
    assert verbs(zoo.cancelled) == {"resubmit", "delete"}


def test_a_reader_sees_no_buttons_and_no_payloads(
    app: Holdfast, zoo: Zoo, web: Callable[..., WebClient]
) -> None:
    client = web(app, Visitor("r", Role.READ))
    for path in ("/", "/tasks", f"/tasks/{zoo.failed.id}", "/queues", "/dead-letters"):
        text = client.get(path).text
        posts = set(re.findall(r'method="post" action="([^"]+)"', text))
        assert posts == {"/theme"}, path
    task = client.get(f"/tasks/{zoo.done.id}").text
    assert "You may not see payloads" in task
    assert "640" not in task
    assert client.get(f"/tasks/{zoo.done.id}/log").status_code == 403
    assert client.get("/audit").status_code == 403


def test_filters_stand_in_the_url(zoo: Zoo, admin: WebClient) -> None:
    def found(query: str) -> list[str]:
        text = admin.get(f"/tasks?{query}").text
        return re.findall(r'id="t-([0-9a-f-]+)"', text)

    assert found("status=failed") == [str(zoo.failed.id)]
    assert found("queue=later") == [str(zoo.scheduled.id)]
    assert found("name=shop.run") == [str(zoo.running.id)]
    assert found("tag=nightly") == [str(zoo.done.id)]
    assert found("error=NO_ROOM") == [str(zoo.failed.id)]
    assert found("text=ORDER:7&queue=default") == [str(zoo.failed.id)]
    assert found("dead=1") == [str(zoo.failed.id)]
    assert found("since=1h&status=running") == [str(zoo.running.id)]
    assert found("until=1h") == []
    assert len(found("sort=name")) == len(zoo.all) + len(zoo.workflow.steps())
    assert "Not filtered" in admin.get("/tasks?since=soon").text


def test_an_id_that_is_typed_leads_to_its_task(zoo: Zoo, admin: WebClient) -> None:
    text = str(zoo.done.id)
    for typed in (text, f"{text[:8]}-{text[-6:]}", text[-12:]):
        answer = admin.get("/tasks", params={"text": typed})
        assert (answer.status_code, answer.headers["location"]) == (303, f"/tasks/{text}")


def test_pages_of_the_list(app: Holdfast, admin: WebClient) -> None:
    ids = [str(handle.id) for handle in app.named("many").send_many([(n,) for n in range(120)])]
    found: list[str] = []
    path: str | None = "/tasks?name=many"
    while path is not None:
        text = admin.get(path).text
        found += re.findall(r'id="t-([0-9a-f-]+)"', text)
        older = re.search(r'rel="next" href="([^"]+)"', text)
        path = None if older is None else older[1].replace("&amp;", "&")
    assert found == sorted(ids, reverse=True)


def test_a_sort_is_of_all_that_fit_or_says_that_it_is_not(app: Holdfast, admin: WebClient) -> None:
    def named(text: str) -> list[str]:
        return re.findall(r"<bdi>(sorted\.[0-9]{3})</bdi></a></th>", text)

    def page_of(path: str) -> tuple[list[str], str | None, bool]:
        text = admin.get(path).text
        older = re.search(r'rel="next" href="([^"]+)"', text)
        link = None if older is None else older[1].replace("&amp;", "&")
        return named(text), link, "are sorted together" in text

    names = [f"sorted.{n * 7 % 150:03d}" for n in range(150)]
    for name in names:
        app.options(queue="sorted").send(name)
    assert page_of("/tasks?queue=sorted&sort=name") == (sorted(names), None, False)
    assert page_of("/tasks?queue=sorted&sort=-name") == (sorted(names)[::-1], None, False)
    assert page_of("/tasks?queue=sorted&sort=-age") == (names, None, False)
    app.named("sorted.000").options(queue="sorted").send_many([(n,) for n in range(100)])
    found, older, is_part = page_of("/tasks?queue=sorted&sort=name")
    assert (len(found), is_part) == (200, True)
    assert found == sorted(["sorted.000"] * 100 + names[50:])
    assert older is not None
    assert page_of(older) == (sorted(names[:50]), None, True)


def test_new_rows_wait_behind_a_link(app: Holdfast, zoo: Zoo, admin: WebClient) -> None:
    text = admin.get("/tasks").text
    again = re.search(r'data-again="([^"]+)"', text)
    assert again is not None
    path = again[1].replace("&amp;", "&")
    before = re.findall(r'id="t-([0-9a-f-]+)"', text)
    app.send("shop.new")
    app.send("shop.new")
    after = admin.get(path, headers={"X-Holdfast-Live": "1"}).text
    assert re.findall(r'id="t-([0-9a-f-]+)"', after) == before
    assert "Show 2 newer" in after
    app.named("many").send_many([(n,) for n in range(200)])
    after = admin.get(path, headers={"X-Holdfast-Live": "1"}).text
    assert re.findall(r'id="t-([0-9a-f-]+)"', after) == before
    assert "Show 50 or more newer" in after


def test_what_has_not_changed_is_not_sent_again(zoo: Zoo, admin: WebClient) -> None:
    path = f"/tasks/{zoo.done.id}"
    live = {"X-Holdfast-Live": "1"}
    first = admin.get(path, headers=live)
    assert "<html" not in first.text
    assert 'id="main"' in first.text
    known = {**live, "If-None-Match": first.headers["etag"]}
    assert admin.get(path, headers=known).status_code == 304
    assert admin.get("/tasks", headers=known).status_code == 200


def test_links_begin_with_the_prefix(
    app: Holdfast, zoo: Zoo, web: Callable[..., WebClient]
) -> None:

    inner = dashboard(app, access=lambda _: ["admin", "payloads"])
    with WebClient(Starlette(routes=[Mount("/ops/queue", inner)])) as client:
        for path in ("/", "/tasks", f"/tasks/{zoo.failed.id}", "/queues/default", "/nothing-here"):
            text = client.get(f"/ops/queue{path}").text
            links = re.findall(r'(?:href|action|src|data-again)="(/[^"]*)"', text)
            assert links
            assert [link for link in links if not link.startswith("/ops/queue/")] == []


def test_what_a_task_has_sent(app: Holdfast, hands: Hands, zoo: Zoo, admin: WebClient) -> None:
    sent = [new_id() for _ in range(21)]
    submissions = [
        submission(id=id, task_name="shop.child", parent_id=zoo.done.id.bytes) for id in sent
    ]
    hands.run(submit.submit(submissions))
    text = admin.get(f"/tasks/{zoo.done.id}").text
    check_markup(text)
    link = f"/tasks?parent={zoo.done.id}"
    assert text.count(">shop.child<") == 20
    assert f'href="{link}"' in text
    assert len(re.findall(r'id="t-', admin.get(link).text)) == 21
    assert "Cancel 21 tasks?" in admin.get(f"/tasks/bulk/cancel?parent={zoo.done.id}").text
    assert "Not filtered" in admin.get("/tasks?parent=nobody").text
    assert "sent by this" not in admin.get(f"/tasks/{zoo.failed.id}").text


def test_a_worker_says_what_each_child_runs(
    app: Holdfast, hands: Hands, zoo: Zoo, admin: WebClient
) -> None:
    name = "child-1"
    assert name in admin.get(f"/workers/{WORKER}").text
    assert ">shop.run<" in admin.get("/workers").text
    for query in ("", "?r=15m", "?r=7d", "?until=2026-01-01"):
        text = admin.get(f"/workers/{WORKER}{query}").text
        assert "Tasks at once" in text
        check_markup(text)


def test_dead_letters_by_cause(app: Holdfast, hands: Hands, zoo: Zoo, admin: WebClient) -> None:
    for code in ("TIMEOUT", "TIMEOUT", "NO_ROOM"):
        handle = app.options(queue="dead").send("shop.fail")
        hands.end(hands.take(handle), Failed(TaskError(code, f"why {code}")), Policy())
    text = admin.get("/dead-letters").text
    check_markup(text)
    causes = re.findall(r'title="shop.fail"><bdi>shop.fail</bdi></a><span>([^<]+)</span>', text)
    assert causes == ["failed 2 times", "failed 2 times"]
    assert "/tasks?dead=1&amp;name=shop.fail&amp;error=TIMEOUT" in text
    assert "why TIMEOUT" in text


def test_exceptions_are_causes_apart(app: Holdfast, hands: Hands, admin: WebClient) -> None:
    for exception in ("ValueError", "KeyError", "KeyError"):
        error = TaskError.stored(
            "UNHANDLED_EXCEPTION", "why", None, f"builtins.{exception}", None, ()
        )
        hands.end(hands.take(app.send("shop.raise")), Failed(error), Policy())
    text = admin.get("/dead-letters").text
    check_markup(text)
    assert "/tasks/bulk/resubmit?dead=1&amp;name=shop.raise&amp;exception=KeyError" in text
    assert "/tasks?dead=1&amp;name=shop.raise&amp;exception=ValueError" in text
    assert "ValueError: why" in text
    (failed,) = app.control.tasks.list(exception="ValueError").tasks
    page = admin.get(f"/tasks/{failed.id}").text
    assert "/tasks?name=shop.raise&amp;exception=ValueError" in page
    ask = admin.get("/tasks/bulk/resubmit?exception=KeyError").text
    assert "Resubmit 2 tasks?" in ask
    assert "exception KeyError" in ask


def test_leases_that_nobody_takes_over_need_attention(
    app: Holdfast, hands: Hands, zoo: Zoo, admin: WebClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.web.pages.attention._STUCK_S", 0.0)
    app.options(queue="stuck").send("shop.stuck")
    wanted = claims.Request(
        token=new_id(), worker_id="w9", queue="stuck", known=["shop.stuck@1"], wanted=1, lease_us=1
    )
    assert len(hands.run(claims.claim(wanted)).tasks) == 1
    (lease,) = [each for each in app.control.workers.overdue(after=0) if each.worker == "w9"]
    assert lease.count == 1
    assert [each for each in app.control.workers.overdue(after="1d") if each.worker == "w9"] == []
    text = admin.get("/").text
    check_markup(text)
    assert "left 1 lease that nobody has taken over" in text
    assert "/tasks?worker=w9&amp;status=claimed%2Crunning" in text


def test_a_worker_says_what_each_child_uses(
    app: Holdfast, hands: Hands, zoo: Zoo, admin: WebClient
) -> None:
    pid = zoo.running.info().worker_pid
    said = (
        f'[{{"name":"process-1","pid":{pid},"memory_mb":412.25,"cpu_percent":87.5}},'
        '{"name":"async-2","pid":9,"memory_mb":31,"cpu_percent":null}]'
    )
    hands.run(
        workers.register(
            WORKER,
            hostname="host-1",
            pid=7,
            version="1",
            lease_us=30_000_000,
            queues='["default"]',
            known="[]",
            settings='{"concurrency": 1}',
            children=said,
        )
    )
    (worker,) = app.control.workers.list()
    assert [(each.name, each.memory_mb) for each in worker.children] == [
        ("process-1", 412.25),
        ("async-2", 31.0),
    ]
    text = admin.get(f"/workers/{WORKER}").text
    assert "412 MB" in text
    assert "88 %" in text
    assert admin.get(f"/api/v1/workers/{WORKER}").json()["children"][0]["pid"] == pid


def test_charts_as_a_table(zoo: Zoo, admin: WebClient) -> None:
    for path in ("/", "/queues/default", f"/workers/{WORKER}"):
        text = admin.get(f"{path}?table=1&r=15m").text
        assert "As charts" in text
        assert "<polyline" not in text.partition('id="charts"')[2].partition("</section>")[0]
        assert "table=1" in text


def test_charts_of_another_time(zoo: Zoo, admin: WebClient) -> None:
    for path in ("/", "/queues/default", f"/workers/{WORKER}"):
        text = admin.get(f"{path}?r=15m&until=2026-01-01T12:00").text
        check_markup(text)
        assert 'title="Half of it later"' in text
        assert f'href="{path}?r=15m&amp;until=2026-01-01T11%3A52"' in text
    assert "Needs attention" not in admin.get("/?until=2026-01-01T12:00").text
    assert "Needs attention" in admin.get("/").text


def test_what_is_not_there(zoo: Zoo, admin: WebClient) -> None:
    for path in ("/tasks/abc", f"/tasks/{'0' * 32}", "/queues/none", "/workers/none", "/x"):
        answer = admin.get(path)
        assert answer.status_code == 404
        assert 'role="alert"' in answer.text


def test_static_files_are_kept_by_browsers_as_long_as_they_hold(admin: WebClient) -> None:
    answer = admin.get("/static/holdfast.css")
    assert answer.headers["content-type"] == "text/css; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"
    known = {"If-None-Match": answer.headers["etag"]}
    assert admin.get("/static/holdfast.css", headers=known).status_code == 304
    for path in ("/static/../__init__.py", "/static/nothing.css", "/static/vendor"):
        assert admin.get(path).status_code == 404


def test_the_theme_is_kept_in_a_cookie(zoo: Zoo, admin: WebClient) -> None:
    headers = {"referer": "http://localhost/tasks?status=failed"}
    answer = admin.post("/theme", data={"theme": "dark"}, headers=headers)
    assert (answer.status_code, answer.headers["location"]) == (303, "/tasks?status=failed")
    assert '<html lang="en" data-theme="dark">' in admin.get("/tasks").text
    elsewhere = {"referer": "http://evil.example//evil.example/x"}
    assert (
        admin.post("/theme", data={"theme": "auto"}, headers=elsewhere).headers["location"] == "/"
    )
    assert admin.post("/theme", data={"theme": "pink"}).status_code == 422


def test_a_selection_leads_back_to_the_list_it_was_made_in(zoo: Zoo, admin: WebClient) -> None:
    listed = admin.get("/tasks", params={"name": "shop.pending"}).text
    assert '<input type="hidden" name="name" value="shop.pending">' in listed
    path = "/tasks/bulk/cancel"
    text = admin.get(path, params={"id": str(zoo.pending.id), "name": "shop.pending"}).text
    assert 'href="/tasks?name=shop.pending" autofocus' in text
    assert "You selected them." in text
    # An open page would ask for the address of the question again.
    assert "data-still" in text


def test_the_list_says_how_many_fit_where_that_is_known(zoo: Zoo, admin: WebClient) -> None:
    def said(query: str) -> str:
        found = re.search(
            r'<h1>Tasks</h1><span class="faint num">([^<]*)</span>', admin.get(query).text
        )
        assert found is not None
        return found[1]

    assert said("/tasks") == "9"
    assert said("/tasks?status=failed,cancelled") == "2"
    assert said("/tasks?name=shop.done") == "1"


def test_one_of_several_statuses_is_left_out_by_its_chip(zoo: Zoo, admin: WebClient) -> None:
    text = admin.get("/tasks?status=failed,stalled").text
    assert 'href="/tasks?status=stalled"' in text
    assert 'href="/tasks?status=failed"' in text
    assert 'href="/tasks?status=completed"' in text


def test_thousands_of_schedules_are_shown_in_parts(
    app: Holdfast, admin: WebClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.send("t")
    for number in range(5):
        app.control.schedules.add(f"s{number}", "@yearly", app.named("t").call())
    monkeypatch.setattr("holdfast.web.pages.schedule_pages._LISTED", 2)
    for module in ("attention", "schedule_pages"):
        monkeypatch.setattr(f"holdfast.web.pages.{module}.is_late", lambda *_: True)
    seen: list[str] = []
    path, text = "/schedules", ""
    while path:
        text = admin.get(path).text
        check_markup(text)
        assert "5 · 5 late" in text
        seen += re.findall(r'<th role="rowheader".*?href="/schedules/(\w+)"', text)
        following = re.search(r'href="(/schedules\?after=\w+)" rel="next"', text)
        path = following[1] if following else ""
    assert seen == [f"s{number}" for number in range(5)]
    assert 'href="/schedules">' in text
    assert seen[:2] == re.findall(
        r'<th role="rowheader".*?href="/schedules/(\w+)"', admin.get("/schedules?after=gone").text
    )
    overview = admin.get("/").text
    assert overview.count("5 are late in all") == 3
