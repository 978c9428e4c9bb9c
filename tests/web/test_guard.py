"""Writes that a page of another site sends in the visitor's name are refused."""

from __future__ import annotations

import pytest
from starlette.datastructures import Headers

from holdfast.web.guard import POLICY, check_site, host_name
from holdfast.web.problem import Refusal


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
        {"origin": "http://here:8000", "host": "here:8000"},
        {"host": "here"},
    ],
)
def test_our_own_pages_and_programs_may_write(headers: dict[str, str]) -> None:
    check_site("POST", Headers(headers))


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": ""},
        {"sec-fetch-site": "cross-site", "origin": "http://here", "host": "here"},
        {"origin": "http://evil", "host": "here"},
        {"origin": "http://here:81", "host": "here:80"},
        {"origin": "null", "host": "here"},
        {"origin": "http://[", "host": "here"},
        {"origin": "", "host": ""},
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_others_may_not(headers: dict[str, str], method: str) -> None:
    check_site("GET", Headers(headers))
    with pytest.raises(Refusal) as refused:
        check_site(method, Headers(headers))
    assert refused.value.problem.status == 403


def test_of_two_sites_neither_may_be_another() -> None:
    both = Headers(raw=[(b"sec-fetch-site", b"same-origin"), (b"sec-fetch-site", b"cross-site")])
    with pytest.raises(Refusal):
        check_site("POST", both)


def test_the_policy_allows_nothing_inline() -> None:
    assert "unsafe" not in POLICY
    assert "default-src 'none'" in POLICY
    assert "frame-ancestors 'none'" in POLICY


@pytest.mark.parametrize(
    ("host", "name"), [("A:80", "a"), ("a", "a"), ("[::1]:80", "[::1]"), ("[::1]", "[::1]")]
)
def test_the_name_of_a_host(host: str, name: str) -> None:
    assert host_name(host) == name
