"""Who may ask for what: every route, for every kind of visitor.

The table names each route with the least role that it needs, so that a route which is added, or one
whose role is changed by accident, fails here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final
from uuid import UUID

import pytest

from holdfast import Holdfast
from holdfast.web.access import Role, Visitor
from holdfast.web.dashboard import Dashboard
from holdfast.web.tokens import Tokens, line_of
from tests.web.client import WebClient
from tests.web.pages.access_table import PAGES

NEEDS: Final = {
    # route: (the least role, whether it shows payloads)
    "login": (None, False),
    "login-enter": (None, False),
    "logout": (None, False),
    "api-live": (None, False),
    "api-ready": (None, False),
    "api-openapi": ("read", False),
    "api-reference": ("read", False),
    "api-list-tasks": ("read", False),
    "api-count-tasks": ("read", False),
    "api-show-task": ("read", False),
    "api-list-attempts": ("read", False),
    "api-why-task": ("read", False),
    "api-list-dependencies": ("read", False),
    "api-show-stack": ("operate", True),
    "api-read-log": ("read", True),
    "api-read-whole-log": ("read", True),
    "api-read-output": ("read", True),
    "api-read-whole-output": ("read", True),
    "api-send-task": ("operate", False),
    "api-send-many-tasks": ("operate", False),
    "api-select-tasks": ("read", False),
    "api-cancel-tasks": ("operate", False),
    "api-resubmit-tasks": ("operate", False),
    "api-reschedule-tasks": ("operate", False),
    "api-delete-tasks": ("admin", False),
    "api-cancel-task": ("operate", False),
    "api-resubmit-task": ("operate", False),
    "api-reschedule-task": ("operate", False),
    "api-delete-task": ("admin", False),
    "api-list-dead-letters": ("read", False),
    "api-count-dead-letters": ("read", False),
    "api-list-causes": ("read", False),
    "api-list-deaths": ("read", False),
    "api-resubmit-all-dead-letters": ("operate", False),
    "api-resubmit-dead-letters": ("operate", False),
    "api-delete-dead-letters": ("admin", False),
    "api-list-queues": ("read", False),
    "api-show-queue": ("read", False),
    "api-pause-queue": ("operate", False),
    "api-resume-queue": ("operate", False),
    "api-limit-queue": ("admin", False),
    "api-order-queue": ("admin", False),
    "api-limit-task": ("admin", False),
    "api-list-workers": ("read", False),
    "api-show-worker": ("read", False),
    "api-list-worker-states": ("read", False),
    "api-show-worker-history": ("read", False),
    "api-stop-worker": ("admin", False),
    "api-drain-worker": ("admin", False),
    "api-show-series": ("read", False),
    "api-show-summary": ("read", False),
    "api-show-depths": ("read", False),
    "api-list-actions": ("admin", False),
    "api-list-schedules": ("read", False),
    "api-preview-schedule": ("read", False),
    "api-show-schedule": ("read", False),
    "api-next-ticks": ("read", False),
    "api-list-ticks": ("read", False),
    "api-add-schedule": ("admin", False),
    "api-delete-schedule": ("admin", False),
    "api-pause-schedule": ("operate", False),
    "api-resume-schedule": ("operate", False),
    "api-run-schedule": ("operate", False),
    "api-backfill-schedule": ("operate", False),
    "api-list-routes": ("read", False),
    "api-set-route": ("admin", False),
    "api-delete-route": ("admin", False),
    "metrics": ("read", False),
    "api-list-workflows": ("read", False),
    "api-start-workflow": ("operate", False),
    "api-count-workflows": ("read", False),
    "api-show-workflow": ("read", False),
    "api-why-workflow": ("read", False),
    "api-chart-workflow": ("read", False),
    "api-pause-workflow": ("operate", False),
    "api-resume-workflow": ("operate", False),
    "api-cancel-workflow": ("operate", False),
    "api-resubmit-workflow": ("operate", False),
    "api-delete-workflow": ("admin", False),
    **PAGES,
}

TOKENS: Final = {word: f"a-token-for-those-who-{word}" for word in ("read", "operate", "admin")}
PARAMETERS: Final = {"id": str(UUID(int=7)), "queue": "q", "worker": "w"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """A web app with a token for each role, and one that sees payloads, too."""
    directory = tmp_path_factory.mktemp("web")
    lines = [line_of(word, word, token) for word, token in TOKENS.items()]
    lines += [line_of(f"{word}-all", f"{word},payloads", f"{t}-all") for word, t in TOKENS.items()]
    (directory / "tokens").write_text("\n".join(lines))
    with Holdfast(f"sqlite:///{directory / 'tasks.db'}") as app:
        yield Dashboard(app, access=None, tokens=Tokens.in_file(directory / "tokens"))


@pytest.fixture(scope="module")
def client(served: Dashboard) -> Iterator[WebClient]:
    with WebClient(served) as opened:
        yield opened


def test_every_route_stands_in_the_table(served: Dashboard) -> None:
    found = {
        route.name: (None if route.needs is None else route.needs.word, route.payloads)
        for route in served.routes
    }
    assert found == NEEDS


@pytest.mark.parametrize("name", sorted(NEEDS))
def test_each_visitor_meets_what_the_table_says(
    name: str, served: Dashboard, client: WebClient
) -> None:
    (route,) = [route for route in served.routes if route.name == name]
    least, payloads = NEEDS[name]
    path = route.path
    for parameter, value in PARAMETERS.items():
        path = path.replace(f"{{{parameter}}}", value)
    for place in [part for part in path.split("/") if part.startswith("{")]:
        path = path.replace(place, "x")
    (method,) = route.methods
    ranks = {role.word: role for role in Role}
    for who in ("", "wrong", *TOKENS, *(f"{word}-all" for word in TOKENS)):
        word, _, sees = who.partition("-")
        token = TOKENS[word] + ("-all" if sees else "") if word in TOKENS else who
        headers = {"authorization": f"Bearer {token}"} if token else {}
        answer = client.send(method, path, headers=headers)
        if least is None:
            assert answer.status_code != 403, who
        elif word not in TOKENS:
            assert answer.status_code in ((401,) if route.kind == "api" else (303, 401)), who
        elif ranks[word] < ranks[least] or (payloads and not sees):
            assert answer.status_code == 403, who
        else:
            assert answer.status_code not in (401, 403), f"{who}: {answer.text}"
            assert answer.status_code < 500, f"{who}: {answer.text}"


@pytest.mark.parametrize("name", sorted(NEEDS))
def test_no_write_is_taken_from_a_page_of_another_site(
    name: str, served: Dashboard, client: WebClient
) -> None:
    (route,) = [route for route in served.routes if route.name == name]
    (method,) = route.methods
    headers = {"authorization": f"Bearer {TOKENS['admin']}-all", "sec-fetch-site": "cross-site"}
    path = route.path.replace("{id}", str(UUID(int=7)))
    answer = client.send(method, path, headers=headers)
    if method != "GET":
        assert answer.status_code == 403


def test_a_dashboard_without_a_rule_is_closed(app: Holdfast, web: Callable[..., WebClient]) -> None:
    client = web(Dashboard(app, access=None))
    answer = client.get("/api/v1/tasks")
    assert (answer.status_code, answer.json()["kind"]) == (401, "closed")


def test_a_rule_that_fails_lets_nobody_in(app: Holdfast, web: Callable[..., WebClient]) -> None:
    def rule(_: object) -> str:
        raise ValueError("secret-of-the-host")

    answer = web(Dashboard(app, access=rule)).get("/api/v1/tasks")
    assert (answer.status_code, answer.json()["kind"]) == (500, "defect")
    assert "secret-of-the-host" not in answer.text


def test_payloads_are_shown_to_those_who_may_see_them(
    app: Holdfast, web: Callable[..., WebClient]
) -> None:
    given = {"password": "hunter2", "iban": "DE00", "city": "Köln", "x": {"$secret": "hunter2"}}
    task = app.send("any", given, n=3)
    path = f"/api/v1/tasks/{task.id}"
    hidden = web(app, Visitor("r", Role.ADMIN)).get(path).json()
    assert (hidden["payloads_shown"], hidden["args"], hidden["kwargs"]) == (False, None, None)
    client = web(Dashboard(app, access=lambda _: ["read", "payloads"], hide=["IBAN"]))
    shown = client.get(path).json()
    assert shown["args"] == [{"password": "***", "iban": "***", "city": "Köln", "x": "***"}]
    assert shown["kwargs"] == {"n": 3}
    assert "hunter2" not in hidden.__repr__() + shown.__repr__()
