"""The OpenAPI 3.1 document, made of the operations and their types.

Owns its form. Nothing in it is written by hand but the sentences about statuses: paths, parameters,
bodies and answers are those that requests are read by and answers are written with, so the document
cannot say something else than the server does.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import NODEFAULT, UNSET
from starlette.responses import Response

from holdfast import __version__
from holdfast.web.api.operation import Operation
from holdfast.web.route import WebRoute

__all__ = ["document", "operations"]

_REF: Final = "#/components/schemas/{name}"
_PROBLEM: Final = "#/components/responses/Problem"

TEXTS: Final = {
    400: "The body cannot be read.",
    401: "No token, or one that is not known.",
    403: "The visitor may not do this, or a page of another site has sent it.",
    404: "There is no such thing.",
    408: "The body took too long.",
    409: "The status of the task does not allow it, or something else is in the way.",
    413: "The body is too large; it was not read.",
    415: "The body is not application/json.",
    421: "The server does not answer to this name.",
    422: "A value does not fit; `path` says which.",
    429: "Too many wrong tokens came from this address.",
    500: "A defect; the log of the server has it under the number in `log`.",
    503: "The database does not answer.",
    504: "A worker did not answer in time.",
}

_PROBLEM_SCHEMA: Final = {
    "title": "Problem",
    "description": "A refusal (RFC 9457). What else is known stands beside these.",
    "type": "object",
    "properties": {
        "type": {"type": "string"},
        "kind": {"type": "string", "description": "For programs."},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "For people."},
    },
    "required": ["type", "kind", "title", "status", "detail"],
}


def operations(routes: Iterable[WebRoute]) -> list[tuple[WebRoute, Operation]]:
    """The routes of the API, with what the document says of each."""
    return [(route, route.about) for route in routes if isinstance(route.about, Operation)]


def document(routes: Iterable[WebRoute], prefix: str = "") -> dict[str, Any]:
    """The whole document; `prefix` is where the web app is mounted."""
    found = operations(routes)
    kinds: list[Any] = []
    for _, about in found:
        kinds += [*about.path.values(), *_query_types(about).values()]
        kinds += [kind for kind in (about.body, about.answer) if _is_described(kind)]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    # By identity: some types cannot be hashed.
    by_type = {id(kind): schema for kind, schema in zip(kinds, schemas, strict=True)}
    for kind in kinds:
        _describe(kind, components)
    paths: dict[str, dict[str, Any]] = {}
    for route, about in found:
        entry = _operation(route, about, by_type)
        paths.setdefault(route.path, {})[route.methods[0].lower()] = entry
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Holdfast",
            "version": __version__,
            "description": "Send tasks, wait for them, and steer them.",
        },
        "servers": [{"url": prefix or "/"}],
        "security": [{"token": []}],
        "tags": [{"name": tag} for tag in dict.fromkeys(about.tag for _, about in found)],
        "paths": paths,
        "components": {
            "schemas": {**components, "Problem": _PROBLEM_SCHEMA},
            "responses": {
                "Problem": {
                    "description": "Refused",
                    "content": {
                        "application/problem+json": {
                            "schema": {"$ref": "#/components/schemas/Problem"}
                        }
                    },
                }
            },
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token of `holdfast web`. Mounted, the host decides.",
                }
            },
        },
    }


def _operation(route: WebRoute, about: Operation, by_type: Mapping[int, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "operationId": route.name.removeprefix("api-").replace("-", "_"),
        "summary": about.summary,
        "tags": [about.tag],
        "responses": _responses(route, about, by_type),
    }
    if about.description:
        entry["description"] = about.description
    if parameters := _parameters(about, by_type):
        entry["parameters"] = parameters
    if about.body is not None:
        entry["requestBody"] = {
            "required": not _may_be_empty(about.body),
            "content": {"application/json": {"schema": by_type[id(about.body)]}},
        }
    if route.needs is None:
        entry["security"] = []
    else:
        entry["x-role"] = route.needs.word
        entry["x-payloads"] = route.payloads
    return entry


def _parameters(about: Operation, by_type: Mapping[int, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": by_type[id(kind)]}
        for name, kind in about.path.items()
    ]
    if about.query is None:
        return found
    texts = field_texts(about.query)
    types = _query_types(about)
    for field in msgspec.structs.fields(about.query):
        schema = dict(by_type[id(types[field.encode_name])])
        if field.default not in (NODEFAULT, UNSET, None):
            schema["default"] = field.default
        said = texts.get(field.name) or schema.get("description")
        parameter: dict[str, Any] = {
            "name": field.encode_name,
            "in": "query",
            "required": field.required,
            "schema": schema,
        }
        if said:
            parameter["description"] = said
        found.append(parameter)
    return found


def _responses(route: WebRoute, about: Operation, by_type: Mapping[int, Any]) -> dict[str, Any]:
    if _is_described(about.answer):
        content = {"application/json": {"schema": by_type[id(about.answer)]}}
    else:
        content = {"text/plain": {"schema": {"type": "string"}}}
    done = {"description": "Done", "content": content}
    found: dict[str, Any] = {"200": done}
    if about.creates:
        found = {"201": {**done, "description": "Created"}, "200": {**done, "description": "There"}}
    statuses = {503, 421, 422, 500, *about.refusals}
    if route.needs is not None:
        statuses |= {401, 403, 429}
    if route.methods[0] != "GET":
        statuses |= {403}
    if about.path:
        statuses |= {404}
    if about.body is not None:
        statuses |= {400, 408, 413, 415}
    for status in sorted(statuses):
        found[str(status)] = {"$ref": _PROBLEM}
    return found


def _query_types(about: Operation) -> dict[str, Any]:
    if about.query is None:
        return {}
    return {field.encode_name: _without_none(field.type) for field in _fields(about.query)}


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    # Once: the types are looked for by identity.
    return msgspec.structs.fields(kind)


@cache
def _inner(kind: Any) -> Any:
    args = [each for each in getattr(kind, "__args__", ()) if each not in _ABSENT]
    return args[0] if len(args) == 1 else kind


_ABSENT: Final = (type(None), msgspec.UnsetType)


def _without_none(kind: Any) -> Any:
    """The type of a parameter that is there: in a query, null cannot be said."""
    args = getattr(kind, "__args__", ())
    return _inner(kind) if any(each in _ABSENT for each in args) else kind


def _is_described(kind: Any) -> bool:
    return kind is not None and kind is not Response


def _may_be_empty(kind: Any) -> bool:
    return all(not field.required for field in msgspec.structs.fields(kind))


def _describe(kind: Any, components: dict[str, Any], seen: set[Any] | None = None) -> None:
    """Put the sentences of fields, which stand below them in the source, into the schemas."""
    seen = set() if seen is None else seen
    for each in (kind, *getattr(kind, "__args__", ())):
        if not (isinstance(each, type) and issubclass(each, msgspec.Struct)) or each in seen:
            continue
        seen.add(each)
        properties = components.get(each.__name__, {}).get("properties", {})
        for name, text in field_texts(each).items():
            if name in properties:
                properties[name] = {**properties[name], "description": text}
        for field in msgspec.structs.fields(each):
            for inner in (field.type, *getattr(field.type, "__args__", ())):
                _describe(inner, components, seen)


@cache
def field_texts(kind: type) -> Mapping[str, str]:
    """The sentence below each field of a class, and of those it is made of."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if not issubclass(each, msgspec.Struct) or each is msgspec.Struct:
            continue
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(each))).body[0]
        except (OSError, SyntaxError):
            continue
        assert isinstance(tree, ast.ClassDef)
        for node, below in zip(tree.body, tree.body[1:], strict=False):
            match node, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    found[name] = " ".join(text.split())
                case _:
                    pass
    return found
