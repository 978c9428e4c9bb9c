"""`docs/reference/http-api.md`: the HTTP API, from the OpenAPI document that the server makes."""

from __future__ import annotations

from typing import Any

from holdfast.web.api.openapi import TEXTS, document
from holdfast.web.api.reference import answers, needs, type_text
from holdfast.web.api.routes import ROUTES

_HEAD = """# The HTTP API, operation by operation

How it is used is said in [the HTTP API](../howto/http-api.md). The server has it as an OpenAPI
document, `/api/v1/openapi.json`, and as a page, `/api/v1/docs`. A field in *italics* must be given.
"""


def as_markdown() -> str:
    found = document(ROUTES)
    schemas = found["components"]["schemas"]
    lines = [_HEAD]
    for tag in found["tags"]:
        lines.append(f"## {tag['name'].capitalize()}\n")
        for path, methods in found["paths"].items():
            for method, about in methods.items():
                if tag["name"] in about["tags"]:
                    lines += _operation(method, path, about)
    lines.append("## Statuses of refusals\n")
    lines.append("| status | |\n|---|---|")
    lines += [f"| {status} | {text} |" for status, text in TEXTS.items()]
    lines.append("\n## Types\n")
    for name in sorted(schemas):
        lines += _type(name, schemas[name])
    return "\n".join(lines).rstrip() + "\n"


def _operation(method: str, path: str, about: dict[str, Any]) -> list[str]:
    lines = [f"### `{method.upper()} {path}`\n", about["summary"]]
    if about.get("description"):
        lines.append(f"\n{about['description']}")
    lines.append(f"\nNeeds {needs(about)}.")
    if parameters := [each for each in about.get("parameters", []) if each["in"] == "query"]:
        lines.append("\n| parameter | type | |\n|---|---|---|")
        lines += [
            f"| `{each['name']}` | {_cell(type_text(each['schema']))} "
            f"| {_cell(each.get('description', ''))} |"
            for each in parameters
        ]
    if body := about.get("requestBody"):
        kind = type_text(body["content"]["application/json"]["schema"])
        lines.append(f"\nBody: {kind}.")
    lines.append(f"\nAnswers {answers(about)}.\n")
    return lines


def _type(name: str, schema: dict[str, Any]) -> list[str]:
    lines = [f"### {name}\n"]
    if said := schema.get("description"):
        lines.append(" ".join(said.split()) + "\n")
    if "enum" in schema:
        lines.append(", ".join(f"`{each}`" for each in schema["enum"]) + "\n")
    if fields := schema.get("properties"):
        lines.append("| field | type | |\n|---|---|---|")
        required = schema.get("required", ()) if name.endswith("Body") else ()
        for field, about in fields.items():
            shown = f"*`{field}`*" if field in required else f"`{field}`"
            lines.append(
                f"| {shown} | {_cell(type_text(about))} | {_cell(about.get('description', ''))} |"
            )
        lines.append("")
    return lines


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
