"""The OpenAPI document: it is complete, and the server keeps to it, whatever is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import checks

from holdfast import Holdfast
from holdfast.web.api.openapi import document, operations
from holdfast.web.api.routes import ROUTES
from tests.web.client import WebClient

KEPT: Final[Any] = (
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
)


def test_every_route_of_the_api_stands_in_the_document() -> None:
    found = document(ROUTES)
    named = {(path, method.upper()) for path, each in found["paths"].items() for method in each}
    own = {"api-openapi", "api-reference", "metrics"}
    routes = {(route.path, route.methods[0]) for route in ROUTES if route.name not in own}
    assert named == routes
    assert len(operations(ROUTES)) == len(routes)


def test_every_operation_says_what_it_does() -> None:
    for route, about in operations(ROUTES):
        assert about.summary.endswith("."), route.name


def test_the_document_is_served_with_its_page(refused: WebClient) -> None:
    served = refused.get("/api/v1/openapi.json").json()
    assert served["openapi"] == "3.1.0"
    assert served["components"]["schemas"]["TaskWhere"]["properties"]["dead"]["description"]
    page = refused.get("/api/v1/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert "POST /api/v1/tasks/{id}/resubmit" in page.text
    assert "<script" not in page.text


def keep_to_the_document(client: WebClient, examples: int) -> None:
    """Send what the document allows, and what it does not, and look at the answers."""
    schema = schemathesis.openapi.from_dict(document(ROUTES))
    for found in schema.get_all_operations():
        operation: Any = found.ok()  # type: ignore[union-attr]

        @given(case=operation.as_strategy())
        @settings(
            max_examples=examples,
            database=None,
            deadline=None,
            derandomize=True,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
            phases=[Phase.generate],
        )
        def keeps(case: Any) -> None:
            given = case.as_transport_kwargs(base_url="http://localhost")
            sent = {
                "headers": dict(given.get("headers") or {}),
                "params": given.get("params"),
                "content": given.get("data"),
            }
            if "json" in given:
                sent["json"] = given["json"]
                del sent["content"]
            # What waits for something new would wait.
            if sent["params"] and "wait" in sent["params"]:
                sent["params"]["wait"] = 0
            answer = client.send(given["method"], given["url"], **sent)
            case.validate_response(answer, checks=KEPT)

        keeps()


def fill(app: Holdfast) -> None:
    @app.task("add")
    def add(a: int, b: int = 0) -> int:
        return a + b

    add.send_many([(n,) for n in range(5)])


def test_the_server_keeps_to_it(refused: WebClient) -> None:
    keep_to_the_document(refused, 3)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_server_keeps_to_it_for_long(app: Holdfast, web: Callable[..., WebClient]) -> None:
    fill(app)
    keep_to_the_document(web(app), 60)
