"""`/openapi.json`, and the page that shows it. The page is plain HTML, and runs nothing."""

from __future__ import annotations

from functools import lru_cache
from html import escape
from typing import Any, Final

from starlette.responses import HTMLResponse, Response

from holdfast.web.access import Role
from holdfast.web.api.answer import json_answer
from holdfast.web.api.openapi import TEXTS, document
from holdfast.web.api.operation import PREFIX
from holdfast.web.context import Context
from holdfast.web.route import WebRoute

__all__ = ["as_html", "with_reference"]

_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>HTTP API</title>
<link rel="stylesheet" href="{style}">
</head>
<body>
<main>
<h1>HTTP API</h1>
<p>Send tasks, wait for them, and steer them. The same as a document for programs:
<a href="{json}">openapi.json</a>.</p>
{sections}
</main>
</body>
</html>
"""


def with_reference(routes: tuple[WebRoute, ...]) -> tuple[WebRoute, ...]:
    """These routes, the document about them, and its page."""

    # It is some tenths of a second of work, and the same until the app is mounted elsewhere.
    @lru_cache(maxsize=4)
    def made(prefix: str) -> dict[str, Any]:
        return document(routes, prefix)

    async def openapi(context: Context) -> Response:
        return json_answer(made(context.prefix))

    async def page(context: Context) -> Response:
        style = context.url("/static/holdfast.css")
        found = made(context.prefix)
        text = _PAGE.format(
            style=escape(style),
            json=escape(context.url(f"{PREFIX}/openapi.json")),
            sections=as_html(found),
        )
        return HTMLResponse(text)

    return (
        *routes,
        WebRoute(
            f"{PREFIX}/openapi.json",
            ("GET",),
            openapi,
            needs=Role.READ,
            name="api-openapi",
            kind="api",
        ),
        WebRoute(
            f"{PREFIX}/docs", ("GET",), page, needs=Role.READ, name="api-reference", kind="page"
        ),
    )


def as_html(found: dict[str, Any]) -> str:
    """The operations by their tags, as headings, tables and lists."""
    parts: list[str] = []
    for tag in found["tags"]:
        parts.append(f"<section><h2>{escape(tag['name'])}</h2>")
        for path, methods in found["paths"].items():
            for method, about in methods.items():
                if tag["name"] in about["tags"]:
                    parts.append(_operation(method, path, about))
        parts.append("</section>")
    return "\n".join(parts)


def _operation(method: str, path: str, about: dict[str, Any]) -> str:
    lines = [
        f'<article class="card" id="{escape(about["operationId"])}">',
        f"<h3><code>{escape(method.upper())} {escape(path)}</code></h3>",
        f"<p>{escape(about['summary'])} {escape(about.get('description', ''))}</p>",
        f"<p>Needs: {escape(needs(about))}.</p>",
    ]
    if parameters := about.get("parameters"):
        lines.append('<table class="tbl"><thead><tr><th>Parameter</th><th>Type</th><th></th></tr>')
        lines.append("</thead><tbody>")
        lines += [
            f"<tr><td><code>{escape(each['name'])}</code></td>"
            f"<td>{escape(type_text(each['schema']))}</td>"
            f"<td>{escape(each.get('description', ''))}</td></tr>"
            for each in parameters
        ]
        lines.append("</tbody></table>")
    if body := about.get("requestBody"):
        kind = type_text(body["content"]["application/json"]["schema"])
        lines.append(f"<p>Body: {escape(kind)}</p>")
    lines.append(f"<p>Answers: {escape(answers(about))}</p></article>")
    return "\n".join(lines)


def needs(about: dict[str, Any]) -> str:
    """Who may ask."""
    if "x-role" not in about:
        return "nothing"
    role: str = about["x-role"]
    return f"{role}, payloads" if about["x-payloads"] else role


def answers(about: dict[str, Any]) -> str:
    """What is answered when it is done, and the statuses of refusals."""
    done = about["responses"]["200"]["content"]
    kind = "text" if "text/plain" in done else type_text(done["application/json"]["schema"])
    refusals = [status for status in about["responses"] if int(status) in TEXTS]
    return f"{kind}; or {', '.join(refusals)}"


def type_text(schema: dict[str, Any]) -> str:
    """A schema in a word or two."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return " | ".join(str(each) for each in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(type_text(each) for each in schema["anyOf"])
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"list of {type_text(schema.get('items', {}))}"
    return str(schema.get("format", kind))
